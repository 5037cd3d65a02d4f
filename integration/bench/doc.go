// Package bench measures the product against its peers. Every figure is a
// ratio of two processes driven in turn by the same load in the same run, since
// absolute times mean nothing on a shared machine; the budgets are those of the
// design, the results stand in docs/performance.md.
//
// Run it with:
//
//	go test -run '^$' -bench . -benchtime 1x ./integration/bench
//
// It has no tests: speed is never asserted.
package bench
