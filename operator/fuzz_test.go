package operator

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// A Host that is taken for direct is one by the reading of URLs too: there is no
// spelling that is an address here and a name for who resolved it.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1:9465", "[::1]:9465", "localhost", "LOCALHOST:80", "[::ffff:10.0.0.1]", "localhost.", "[fe80::1%25eth0]:1",
		"127.1", "a@127.0.0.1", "127.0.0.1/x", "localhost#", "[::1].example", "127.0.0.1\t", "::1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !isDirect(host) {
			return
		}
		u, err := url.Parse("http://" + host + "/livez")
		if err != nil || u.Host != host || u.Path != "/livez" {
			t.Fatalf("%q is no host of a URL: %v", host, err)
		}
		name := u.Hostname()
		if a, err := netip.ParseAddr(name); !strings.EqualFold(name, "localhost") && (err != nil || a.Zone() != "") {
			t.Fatalf("%q names %q", host, name)
		}
	})
}
