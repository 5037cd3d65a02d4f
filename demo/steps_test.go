package demo

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/simulate"
)

// walk runs steps that hold.
func walk(t *testing.T, e *evidence, steps ...func(context.Context, *evidence) error) {
	t.Helper()
	for _, run := range steps {
		if err := run(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// What a step claims it has looked for: with something else in its place it fails.
func TestStepsNoticeWhatIsNotAsClaimed(t *testing.T) {
	t.Parallel()
	c, err := newCluster(configured(t, &kept{}))
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	var e evidence
	walk(t, &e, c.start, c.register, c.join, c.download)
	fails := func(what string, err error) {
		t.Helper()
		if !isMismatch(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	whole := c.site.digest
	c.site.digest = whole[1:] + whole[:1]
	fails("a file with another digest", c.downloaded(t.Context(), &e, c.nodes[nodeA]))
	c.site.digest = whole

	fails("an explanation that admits, of what is dropped", c.explained(t.Context(), &e, c.nodes[nodeC], true))
	fails("an explanation that drops, of what is admitted", c.explained(t.Context(), &e, c.nodes[nodeA], false))

	// A relay that refuses a first packet and no other.
	all := grants([2]int{nodeA, nodeB}, [2]int{nodeB, nodeA}, [2]int{nodeB, nodeC}, [2]int{nodeC, nodeB})
	opened := make(chan error, 1)
	go func() {
		_, err := c.relay.console.until(t.Context(), func(d document) error {
			if drops(d.member(nodeNames[nodeC]), noGrant) == 0 {
				return mismatch("a dropped packet", "none")
			}
			return nil
		})
		if err == nil {
			_, err = c.apply(t.Context(), all)
		}
		opened <- err
	}()
	fails("a download that is refused at first", c.denied(t.Context(), &e))
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	fails("a refused download that is granted", c.denied(t.Context(), &e))

	// A record of one side that the other has not.
	if err := c.report(t.Context(), c.nodes[nodeA]); err != nil {
		t.Fatal(err)
	}
	if err := c.report(t.Context(), c.nodes[nodeC]); err != nil {
		t.Fatal(err)
	}
	_, err = sameBytes(reportMethod, c.nodes[nodeA].pallet.Frames(), c.cloudly.Frames())
	fails("another node's report", err)
	_, err = sameBytes(pushMethod, c.cloudly.Frames(), c.nodes[nodeB].pallet.Frames())
	fails("a push that there was not", err)

	// What was refused before is dropped no more.
	d, err := c.relay.console.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = refused(d, d, nodeNames[nodeC])
	fails("drops of another step", err)

	// No window was projected under these leases.
	for _, m := range c.nodes {
		m.pallet.AdmitProjection(simulate.Projection{})
	}
	names := c.watchNames(t.Context())
	defer names.stop()
	fails("closed windows", names.unbroken())
}

// A transfer has stopped when nothing comes any more, and not before.
func TestATransferThatGoesOnHasNotStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var goes transfer
		var until atomic.Bool
		go func() {
			for !until.Load() {
				time.Sleep(silence / 2)
				goes.bytes.Add(1)
			}
		}()
		if n, err := goes.silent(t.Context()); !isMismatch(err) {
			t.Errorf("%d bytes, %v", n, err)
		}
		until.Store(true)
		began := time.Now()
		n, err := goes.silent(t.Context())
		if err != nil || n != goes.bytes.Load() || time.Since(began) < silence {
			t.Errorf("%d bytes of %d after %s, %v", n, goes.bytes.Load(), time.Since(began), err)
		}
	})
}
