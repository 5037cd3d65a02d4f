package peers

// Agreed returns what either client reports of either server, by scenario: the
// results in which the versions do not differ. An implementation that claims
// to be a peer must give them too.
func Agreed() map[string]string {
	return map[string]string{
		"echo":            `{"response":{"got":{"a":1,"text":"grüße € 😀 ` + "\u2028" + ` \u0000 \"\\","list":[1.5,0,true,null]}}}`,
		"loneSurrogate":   `{"response":{"got":{"deep":{"lone":"\ud800"}}}}`,
		"typedError":      `{"error":{"name":"TypedResponseError","text":"denied","data":{"code":"E1"}}}`,
		"nothing":         `{"response":null}`,
		"unknownMethod":   `{"error":{"name":"TypedResponseError","text":"There is no available method for this call on the server side","data":{}}}`,
		"inFlight":        `{"calls":1000,"right":1000}`,
		"outOfOrder":      `{"order":["e","a","d","b","c"]}`,
		"servesManyCalls": `{"calls":100,"right":100}`,
		"large":           `{"chars":524288,"same":true}`,
		"servesCalls": `{"response":{"answers":[{"response":{"answer":42}},` +
			`{"error":{"name":"TypedResponseError","text":"client refuses","data":{"code":"C1"}}},` +
			`{"error":{"name":"TypedResponseError","text":"There is no available method for this call on the server side","data":{}}}]}}`,
	}
}
