package contract

import (
	"testing"

	"pgregory.net/rapid"
)

func readNodeCorestoreAlone(body []byte) (NodeCorestore, error) {
	return readAs[NodeCorestore]("node corestore", body, 0)
}

// R77: an endpoint is a canonical http or https origin: user, path, trailing slash,
// query, fragment, default port and other schemes are refused.
func TestR77_NodeCorestore(t *testing.T) {
	notCanonical := []string{`endpoint: is not a canonical http or https origin`}
	checkBodies(t, readNodeCorestoreAlone, []bodyCase{
		{"http", `{"endpoint":"http://10.0.0.1:3000"}`, nil},
		{"https", `{"endpoint":"https://cs.example"}`, nil},
		{"missing", `{}`, []string{`endpoint: is missing`}},
		{"null", `{"endpoint":null}`, []string{`endpoint: is not a string`}},
		{"userinfo", `{"endpoint":"http://u@h"}`, notCanonical},
		{"path", `{"endpoint":"http://h/a"}`, notCanonical},
		{"slash", `{"endpoint":"http://h/"}`, notCanonical},
		{"query", `{"endpoint":"http://h?a"}`, notCanonical},
		{"fragment", `{"endpoint":"http://h#a"}`, notCanonical},
		{"default port", `{"endpoint":"http://h:80"}`, notCanonical},
		{"scheme", `{"endpoint":"ftp://h"}`, notCanonical},
	})
	checkExactKeys(t, `{"endpoint":"http://h"}`, nil, errorOf(readNodeCorestoreAlone))
	checkWritten(t, func(t *rapid.T) NodeCorestore { return NodeCorestore{drawOrigin(t, "http")} }, readNodeCorestoreAlone)
}
