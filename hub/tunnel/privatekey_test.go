package tunnel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flynn/noise"
)

func TestPrivateKeyEncodings(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"hexadecimal":  strings.Repeat("11", 32),
		"31 bytes":     base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"33 bytes":     base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"a line end":   hubKey.Secret() + "\n",
		"another last": hubKey.Secret()[:42] + "F=",
	} {
		if _, err := ParsePrivateKey(text); !errors.Is(err, ErrPrivateKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	key, err := ParsePrivateKey(hubKey.Secret())
	if err != nil || *key.scalar.get() != *hubKey.scalar.get() || key.public != hubKey.public {
		t.Errorf("its own encoding: %v", err)
	}
	if !(PrivateKey{}).IsZero() || hubKey.IsZero() {
		t.Error("IsZero is wrong")
	}
	if _, err := GeneratePrivateKey(iotest.ErrReader(errors.New("no randomness"))); err == nil {
		t.Error("a key was made of no randomness")
	}
}

// Whatever prints, logs or encodes secrets gets nothing of them.
func TestSecretsDoNotPrint(t *testing.T) {
	key := mustKey(0xab)
	node, hub := agreedDirect(t, CipherAES256GCM)
	direct, epochs := node.Direct(start)
	request := &Request{state: hide(noise.HandshakeState{})}
	keys := epochs.keys(epochs.root.get().master, 0)
	var out bytes.Buffer
	type wrapped struct {
		Key    PrivateKey
		Point  *PrivateKey
		Keys   Keys
		hidden PrivateKey
		inside Keys
	}
	w := wrapped{key, &key, keys, key, keys}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o"} {
		fmt.Fprintf(&out, verb+"\n", key)
		fmt.Fprintf(&out, verb+"\n", &key)
		fmt.Fprintf(&out, verb+"\n", w)
		fmt.Fprintf(&out, verb+"\n", keys)
		fmt.Fprintf(&out, verb+"\n", hub)
		fmt.Fprintf(&out, verb+"\n", *hub)
		fmt.Fprintf(&out, verb+"\n", epochs)
		fmt.Fprintf(&out, verb+"\n", *epochs)
		fmt.Fprintf(&out, verb+"\n", direct)
		fmt.Fprintf(&out, verb+"\n", request)
	}
	fmt.Fprintln(&out, key.String(), key.GoString(), keys.String(), keys.GoString())
	encoded, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", key, "in", w)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", key, "in", w)
	text := strings.ToLower(out.String())
	for name, secret := range map[string][]byte{
		"private key": key.scalar.get()[:], "seal key": keys.seal.get()[:], "open key": keys.open.get()[:],
		"master": epochs.root.get().master[:], "lane secret": epochs.root.get().lane[:], "proof": hub.proof.get()[:],
	} {
		for _, form := range []string{
			fmt.Sprintf("%x", secret[:4]),
			fmt.Sprintf("%d %d %d", secret[0], secret[1], secret[2]),
			fmt.Sprintf("0x%x, 0x%x, 0x%x", secret[0], secret[1], secret[2]),
			fmt.Sprintf("%d,%d,%d", secret[0], secret[1], secret[2]),
			strings.ToLower(base64.StdEncoding.EncodeToString(secret)[:8]),
		} {
			if strings.Contains(text, form) {
				t.Errorf("the %s stands there as %q", name, form)
			}
		}
	}
}
