package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
)

// readBuffer is more than bufio keeps of a message.
const readBuffer = 6 << 10

// wantForgotten waits until a text lies nowhere in the relay's memory. Before is done each
// time that it is looked.
func (c *cluster) wantForgotten(what, text string, before ...func()) {
	c.t.Helper()
	c.Eventually(what+" to be forgotten", func() error {
		for _, do := range before {
			do()
		}
		if n := c.Copies(text); n > 0 {
			return fmt.Errorf("%d copies lie in the memory of the relay", n)
		}
		return nil
	})
}

// wantSeen fails when the search is blind.
func (c *cluster) wantSeen(what, text string) {
	c.t.Helper()
	if c.Copies(text) == 0 {
		c.t.Errorf("%s was not found in the relay's memory: the search is blind", what)
	}
}

// R74: nothing of a bearer is left in the whole process, whatever became of its
// registration. A WebSocket masks what a client sends, and the relay what it forwards, so
// that what crypto/tls keeps of a record is no text.
func TestR74_NothingOfABearerIsLeftInTheProcess(t *testing.T) {
	c := start(t)
	c.node = c.Node("node-n")
	c.wantSeen("the bearer that the relay keeps", c.Cloudly.Authorization())
	for _, f := range fates() {
		if f.misplaced { // of which the relay cannot know that it is one
			continue
		}
		bearer := "clusterIngressToken_" + c.Marker("bearer, "+f.what)
		f.run(c, bearer)
		c.wantForgotten("a bearer that was "+f.what, bearer)
	}
}

// R69, contract §6.2, §18: the keys of a table lie in memory as long as it is held, and
// those of one that was replaced, refused, passed over or dropped do not.
func TestR69_TheKeysOfATableLieInMemoryAsLongAsItIsHeld(t *testing.T) {
	c := start(t, rig.PlainCloudly())
	h := c.ingress("node-a")
	over := func() {
		c.Cloudly.CallSocket(c.Soon(), 1, "somethingNobodyKnows", []byte(`{"x":"`+strings.Repeat("x", readBuffer)+`"}`))
	}
	table := func(revision int64) (text, key string) {
		key = c.Marker(fmt.Sprint("key of table ", revision))
		return `{"revision":` + fmt.Sprint(revision) + `,"issuedAt":1,"routes":[{"hostname":"a.example","destinations":[],"certificate":{"privateKey":"` + key + `","chain":"` + strings.Repeat("c", 64<<10) + `"}}],"portRoutes":[]}`, key
	}
	five, key5 := table(5)
	c.pushed("5", five, 5)
	h.wantHint(5)
	h.wantTable("5", five)
	c.wantSeen("the key of the table that is held", key5)

	four, key4 := table(4)
	c.pushed("4", four, 5)
	c.wantForgotten("the key of a table that was passed over", key4, over)
	broken, keyBroken := table(0)
	if _, err := c.push(`{"table":` + broken + `}`); err == nil {
		t.Error("a table that breaks a rule was taken")
	}
	c.wantForgotten("the key of a table that was refused", keyBroken, over)
	six, key6 := table(6)
	c.pulls(`{"table":`+six+`}`, "applied")
	h.wantHint(6)
	h.wantTable("6", six)
	c.wantForgotten("the key of a table that was replaced", key5, over)
	c.pulls(`{"table":`+broken+`}`, "invalid")
	c.wantForgotten("the key of a pulled table that was refused", keyBroken, over)
	c.wantSeen("the key of the table that is held", key6)

	c.Cloudly.DisableRelay()
	c.RegisterAgain()
	if code, _ := h.WaitClose(); code != 4002 {
		t.Errorf("closed with %d", code)
	}
	c.wantForgotten("the key of a table that went with custody", key6, over)
}
