package cloudly

import (
	"slices"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

func kindsOf(b *inbox) (kinds []string) {
	for m, ok := b.take(); ok; m, ok = b.take() {
		text := m.kind.String()
		if m.push != nil {
			text = "push"
		}
		if m.name != "" {
			text += " " + string(m.name)
		}
		kinds = append(kinds, text)
	}
	return kinds
}

// What others may say at will waits once; what belongs to a step is never merged,
// and a custody name is never lost.
func TestInboxMergesWishesAlone(t *testing.T) {
	b := newInbox()
	post := func(e event) { b.post(mail{event: e}) }
	for range 1000 {
		post(event{kind: evFacts})
		post(event{kind: evKick})
		post(event{kind: evStop})
		for _, name := range []contract.RefusalName{notOn, stale} {
			post(event{kind: evHeard, epoch: 1, name: name})
		}
	}
	post(event{kind: evHeard, epoch: 2, name: stale})
	post(event{kind: evLost, epoch: 1})
	post(event{kind: evLost, epoch: 1})
	want := []string{"facts", "kick", "stop", "heard relay-cluster-not-enabled", "heard relay-credential-generation-stale",
		"heard relay-credential-generation-stale", "lost", "lost"}
	if got := kindsOf(b); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	post(event{kind: evFacts})
	if got := kindsOf(b); !slices.Equal(got, []string{"facts"}) {
		t.Fatalf("after it was looked at: %q", got)
	}
}

// The latest look at the credential is what counts.
func TestInboxKeepsTheLatestCredential(t *testing.T) {
	b := newInbox()
	b.post(mail{event: event{kind: evCredential, fresh: true}})
	b.post(mail{event: event{kind: evCredential, fresh: false}, unusual: &CredentialError{Name: CredentialMode}})
	m, _ := b.take()
	if m.fresh || m.unusual == nil {
		t.Fatalf("got %+v", m.event)
	}
	if _, more := b.take(); more {
		t.Fatal("two looks")
	}
}

func TestInboxBoundsPushesAndCloses(t *testing.T) {
	b := newInbox()
	push := func() bool { return b.post(mail{push: new(typedsocket.Request)}) }
	for i := range waitingPushes {
		if !push() {
			t.Fatalf("push %d refused", i+1)
		}
	}
	if push() {
		t.Fatal("one push too many was taken")
	}
	b.take()
	if !push() {
		t.Fatal("no room after one was looked at")
	}
	if left := b.close(); len(left) != waitingPushes {
		t.Fatalf("%d left", len(left))
	}
	if push() || b.post(mail{event: event{kind: evStop}}) {
		t.Fatal("taken after the end")
	}
	if got := kindsOf(b); len(got) != 0 {
		t.Fatalf("holds %q after the end", got)
	}
}
