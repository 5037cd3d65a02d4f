package simulate

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// seen is what the relay said on one socket, by which its next answers are judged.
type seen struct {
	hinted int64 // greatest revision in a hint
	served int64 // greatest revision in an answer
	digest [sha256.Size]byte
}

// TableOutcome is what became of one answer to a pull.
type TableOutcome string

// The outcomes of a pull.
const (
	TableApplied TableOutcome = "applied" // it is served now
	TableStale   TableOutcome = "stale"   // not greater than the one held: ignored
	TableNone    TableOutcome = "none"    // null: Cloudly has computed none yet
	TableRefused TableOutcome = "refused" // it cannot be read or served; what is held stays
)

// TableJudgement is what the ingress decided about one answer to a pull.
type TableJudgement struct {
	At       time.Time // by Wall
	Socket   int
	Revision int64 // 0 for none, and for one that was not read
	Outcome  TableOutcome
	Err      error    // why it was refused; it quotes nothing of the table
	Unserved []string // routes of an applied table that this ingress does not serve, one reason each
}

// Tables returns what was decided about tables, oldest first.
func (i *Ingress) Tables() []TableJudgement {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]TableJudgement(nil), i.judgements...)
}

// Revision returns the revision of the table that is served, 0 for none.
func (i *Ingress) Revision() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.table.revision()
}

// Table returns the table that is served, and false while none is. It is secret.
func (i *Ingress) Table() (contract.RouteTable, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.table == nil {
		return contract.RouteTable{}, false
	}
	return i.table.RouteTable, true
}

// WaitRevision waits until a table of at least this revision is served.
func (i *Ingress) WaitRevision(ctx context.Context, atLeast int64) error {
	return i.Wait(ctx, "a route table", func() bool { return i.Revision() >= atLeast })
}

// pullSoon has the table pulled. The lock is held.
func (i *Ingress) pullSoon() {
	i.due = true
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// keepPulling pulls whenever that is due, again after a while when it was refused.
func (i *Ingress) keepPulling() {
	wait := backoff{first: i.cfg.FirstBackoff, last: i.cfg.LastBackoff, random: i.cfg.Random}
	for {
		select {
		case <-i.wake:
		case <-i.done:
			return
		}
		for i.pullDue() {
			if _, err := i.Pull(context.Background()); err == nil || !i.pullFailed(err) {
				wait.failures = 0
				continue
			}
			if !i.pause(wait.next()) {
				return
			}
		}
	}
}

// pullDue takes the mark that a pull is due.
func (i *Ingress) pullDue() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	due := i.due && i.bound != nil
	i.due = false
	return due
}

// pullFailed reports whether a pull is to be tried again on its socket. Where the
// relay says that this is no ingress any more, the ingress registers anew; what
// answered wrongly is not asked again before the next hint.
func (i *Ingress) pullFailed(err error) bool {
	if name, ok := Named(err, contract.TransportRefusals()); ok && name == contract.ClusterIngressNotRegistered {
		i.line.hang()
		return false
	}
	var timeout *typedsocket.TimeoutError
	if !answered(err) && !errors.As(err, &timeout) {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.due = i.bound != nil
	return i.due
}

// Pull asks the relay for the table, with the revision that is held, and returns
// what became of the answer. One that is refused is the error too.
func (i *Ingress) Pull(ctx context.Context) (TableJudgement, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	k, socket, err := i.standing()
	if err != nil {
		return TableJudgement{}, err
	}
	i.mu.Lock()
	var request contract.IngressRouteTableRequest
	if known := i.table.revision(); known > 0 {
		request.KnownRevision = &known
	}
	hinted := i.seen.hinted // before the question: the answer must be as new
	i.mu.Unlock()
	body, err := call(ctx, socket, contract.MethodGetIngressRouteTable, i.cfg.Spell(request.AppendJSON(nil)))
	if err != nil {
		return TableJudgement{}, err
	}
	return i.judgeTable(k, body, hinted)
}

// judgeTable judges an answer to a pull and takes the table over when its revision
// is greater than that of the one held.
func (i *Ingress) judgeTable(k *link, body []byte, hinted int64) (TableJudgement, error) {
	table, err := readServedTable(body) // outside the lock: keys take their time
	i.mu.Lock()
	defer i.mu.Unlock()
	defer i.watch.notify()
	j := TableJudgement{At: i.wall(), Socket: k.number, Revision: table.revision(), Err: err}
	switch {
	case err != nil && table == nil:
		j.Outcome = TableRefused
		i.violated(TableAnswer, k.number, contract.MethodGetIngressRouteTable)
	default:
		i.judgeOrder(k, table, hinted)
		j.Outcome = i.decide(table, err)
	}
	if j.Outcome == TableRefused && table != nil {
		i.violated(TableContent, k.number, contract.MethodGetIngressRouteTable)
	}
	if j.Outcome == TableApplied {
		i.table, j.Unserved = table, table.unserved
	}
	if len(i.judgements) >= maximumJudgements {
		i.judgements = i.judgements[1:]
	}
	i.judgements = append(i.judgements, j)
	return j, err
}

// decide decides about a table by its revision, nil for null; err says that it
// cannot be served.
func (i *Ingress) decide(table *servedTable, err error) TableOutcome {
	switch {
	case table == nil:
		return TableNone
	case err != nil:
		return TableRefused
	case table.Revision <= i.table.revision():
		return TableStale
	}
	return TableApplied
}

// judgeOrder notes an answer that is older than what the relay has said on this
// socket, or that has changed under its revision.
func (i *Ingress) judgeOrder(k *link, table *servedTable, hinted int64) {
	if i.bound != k {
		return // the socket has ended meanwhile
	}
	revision := table.revision()
	switch {
	case revision < i.seen.served:
		i.violated(TableWentBack, k.number, contract.MethodGetIngressRouteTable)
		return
	case revision < hinted:
		i.violated(TableBehindHint, k.number, contract.MethodGetIngressRouteTable)
	}
	if table == nil {
		return
	}
	digest := sha256.Sum256(table.Encoded)
	if revision == i.seen.served && digest != i.seen.digest {
		i.violated(TableChanged, k.number, contract.MethodGetIngressRouteTable)
	}
	i.seen.served, i.seen.digest = revision, digest
}
