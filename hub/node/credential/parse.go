package credential

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// The keys of a credential.
const (
	keyHub            = "hub"
	keyHubPublicKey   = "hub-public-key"
	keyAuthorityID    = "authority-id"
	keyPrivateKey     = "private-key"
	keyPrivateKeyFile = "private-key-file"
	keyExpiresAt      = "expires-at"
)

// text is the value of one key.
type text struct {
	value string
	line  int
}

// parse reads a credential. dir is where a key file is looked for.
func parse(content []byte, dir string) (c node.Credential, err error) {
	defer func() {
		// The library has a history of panics for odd files.
		if recover() != nil {
			c, err = node.Credential{}, &Error{Name: NotYAML}
		}
	}()
	texts, err := mapping(content)
	if err != nil {
		return node.Credential{}, err
	}
	for _, read := range []func(map[string]text, *node.Credential) error{
		readHub, readHubKey, readAuthority, readExpiry,
		func(texts map[string]text, c *node.Credential) error { return readPrivateKey(texts, dir, c) },
	} {
		if err := read(texts, &c); err != nil {
			return node.Credential{}, err
		}
	}
	return c, nil
}

// mapping returns the texts of the one document. An error of the library is not
// repeated: it may quote the file.
func mapping(content []byte) (map[string]text, error) {
	if !utf8.Valid(content) {
		return nil, &Error{Name: NotYAML}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return map[string]text{}, nil
	case err != nil:
		return nil, &Error{Name: NotYAML}
	case !errors.Is(decoder.Decode(&second), io.EOF):
		return nil, &Error{Name: NotYAML}
	}
	root := document.Content[0]
	if !isPlain(root) || root.Kind != yaml.MappingNode {
		return nil, &Error{Name: NotPlain, Line: root.Line}
	}
	texts := map[string]text{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if !isPlain(key) || key.Kind != yaml.ScalarNode {
			return nil, &Error{Name: NotPlain, Line: key.Line}
		}
		switch key.Value {
		case keyHub, keyHubPublicKey, keyAuthorityID, keyPrivateKey, keyPrivateKeyFile, keyExpiresAt:
		default:
			return nil, &Error{Name: UnknownKey, Line: key.Line}
		}
		if _, again := texts[key.Value]; again {
			return nil, &Error{Name: Repeated, Key: key.Value, Line: key.Line}
		}
		if !isPlain(value) || value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			return nil, &Error{Name: NotPlain, Key: key.Value, Line: key.Line}
		}
		texts[key.Value] = text{value.Value, key.Line}
	}
	return texts, nil
}

// isPlain reports whether a node is what it is written as.
func isPlain(n *yaml.Node) bool {
	return n.Kind != yaml.AliasNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0
}

// need returns the text of a key that must be there.
func need(texts map[string]text, key string) (text, error) {
	t, found := texts[key]
	if !found {
		return text{}, &Error{Name: KeyMissing, Key: key}
	}
	return t, nil
}

func readHub(texts map[string]text, c *node.Credential) error {
	t, err := need(texts, keyHub)
	if err != nil {
		return err
	}
	hub, err := netip.ParseAddrPort(t.value)
	if err != nil || hub.Port() == 0 || hub.Addr().IsUnspecified() || hub.Addr().Zone() != "" {
		return &Error{Name: NoAddress, Key: keyHub, Line: t.line}
	}
	c.Hub = hub
	return nil
}

func readHubKey(texts map[string]text, c *node.Credential) error {
	t, err := need(texts, keyHubPublicKey)
	if err != nil {
		return err
	}
	if c.HubKey, err = node.ParsePublicKey(t.value); err != nil || c.HubKey == (node.PublicKey{}) {
		return &Error{Name: NoKey, Key: keyHubPublicKey, Line: t.line}
	}
	return nil
}

func readAuthority(texts map[string]text, c *node.Credential) error {
	t, err := need(texts, keyAuthorityID)
	if err != nil {
		return err
	}
	if t.value == "" || len(t.value) > tunnel.MaxAuthorityID {
		return &Error{Name: NoID, Key: keyAuthorityID, Line: t.line}
	}
	c.AuthorityID = t.value
	return nil
}

func readExpiry(texts map[string]text, c *node.Credential) error {
	t, found := texts[keyExpiresAt]
	if !found {
		return nil
	}
	if ms, err := strconv.ParseUint(t.value, 10, 53); err == nil && ms > 0 {
		c.ExpiresAt = time.UnixMilli(int64(ms)).UTC()
		return nil
	}
	at, err := time.Parse(time.RFC3339, t.value)
	if err != nil {
		return &Error{Name: NoTime, Key: keyExpiresAt, Line: t.line}
	}
	c.ExpiresAt = at.UTC()
	return nil
}

func readPrivateKey(texts map[string]text, dir string, c *node.Credential) error {
	own, here := texts[keyPrivateKey]
	file, there := texts[keyPrivateKeyFile]
	var err error
	switch {
	case here && there:
		return &Error{Name: TwoKeys, Line: max(own.line, file.line)}
	case here:
		if c.Key, err = node.ParsePrivateKey(own.value); err != nil {
			return &Error{Name: NoKey, Key: keyPrivateKey, Line: own.line}
		}
	case there:
		name := file.value
		if strings.ContainsRune(name, 0) || name == "" {
			return &Error{Name: Missing, Key: keyPrivateKeyFile, Line: file.line}
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if c.Key, err = ReadKey(name); err != nil {
			var why *Error
			if errors.As(err, &why) {
				why.Key, why.Line = keyPrivateKeyFile, file.line
			}
			return err
		}
	default:
		return &Error{Name: KeyMissing, Key: keyPrivateKey}
	}
	return nil
}
