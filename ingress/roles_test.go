package ingress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// happening is one thing that happened to roles, for the oracle.
type happening struct {
	what   string
	socket int
	node   string
	ticket int // of claim, settle and accept
}

// oracle says from the whole history whose ingress a socket is, by walking back.
type oracle []happening

// last returns the index of the last happening that is one of these, -1 for none.
func (o oracle) last(is func(happening) bool) int {
	for i := len(o) - 1; i >= 0; i-- {
		if is(o[i]) {
			return i
		}
	}
	return -1
}

func (o oracle) holder(node string) int {
	at := o.last(func(h happening) bool { return h.what == "accept" && h.node == node })
	if at < 0 || o[at+1:].last(func(h happening) bool { return h.what == "drop" || h.what == "end" && h.socket == o[at].socket }) >= 0 {
		return -1
	}
	return o[at].socket
}

// belongs returns the node that a socket belongs to.
func (o oracle) belongs(socket int) string {
	since := o[o.last(func(h happening) bool { return h.what == "drop" || h.what == "end" && h.socket == socket })+1:]
	if at := since.last(func(h happening) bool { return h.what == "accept" && h.socket == socket }); at >= 0 {
		return since[at].node
	}
	for _, h := range since {
		open := h.what == "claim" && h.socket == socket
		if open && since.last(func(g happening) bool { return g.what == "settle" && g.ticket == h.ticket }) < 0 {
			return h.node
		}
	}
	return ""
}

// superseded reports whether another socket took this one's place.
func (o oracle) superseded(socket int) bool {
	since := o[o.last(func(h happening) bool { return h.what == "drop" || h.what == "end" && h.socket == socket })+1:]
	at := since.last(func(h happening) bool { return h.what == "accept" && h.socket == socket })
	return at >= 0 && since[at:].last(func(h happening) bool {
		return h.what == "accept" && h.node == since[at].node && h.socket != socket
	}) >= 0
}

func (o oracle) attached() bool {
	at := o.last(func(h happening) bool { return slices.Contains([]string{"attach", "detach", "drop"}, h.what) })
	return at >= 0 && o[at].what == "attach"
}

// current reports whether an acceptance of a ticket counts.
func (o oracle) current(k int) bool {
	at := o.last(func(h happening) bool { return h.what == "claim" && h.ticket == k })
	over := o[at+1:].last(func(h happening) bool {
		return slices.Contains([]string{"attach", "detach", "drop"}, h.what) || h.what == "end" && h.socket == o[at].socket
	})
	return o.attached() && over < 0 && !o.superseded(o[at].socket)
}

// TestRolesAgainstTheirHistory: random sequences of everything that can happen.
func TestRolesAgainstTheirHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, past := newRoles[int](), oracle{}
		open := map[int]ticket[int]{}
		tickets := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			socket := rapid.IntRange(0, 3).Draw(t, "socket")
			node := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")
			switch what := rapid.SampledFrom([]string{"attach", "detach", "drop", "end", "claim", "claim", "claim", "settle", "accept", "accept"}).Draw(t, "what"); what {
			case "attach":
				r.attach()
				past = append(past, happening{what: what})
			case "detach":
				r.detach()
				past = append(past, happening{what: what})
			case "drop":
				r.drop()
				past = append(past, happening{what: what})
			case "end":
				r.end(socket)
				past = append(past, happening{what: what, socket: socket})
			case "claim":
				belongs := past.belongs(socket)
				want := (belongs == "" || belongs == node) && !past.superseded(socket)
				k, ok := r.claim(socket, node)
				if ok != want {
					t.Fatalf("claim of %s by %d: %t, want %t after %v", node, socket, ok, want, past)
				}
				if ok {
					tickets++
					open[tickets] = k
					past = append(past, happening{what, socket, node, tickets})
				}
			case "settle", "accept":
				if len(open) == 0 {
					continue
				}
				var of []int
				for n := range open {
					of = append(of, n)
				}
				slices.Sort(of)
				n := rapid.SampledFrom(of).Draw(t, "ticket")
				k := open[n]
				if want := past.current(n); r.current(k) != want {
					t.Fatalf("ticket %d is current: %t after %v", n, !want, past)
				} else if what == "accept" && want {
					before := past.holder(k.node)
					how, older := r.accept(k)
					want := acceptedFirst
					switch {
					case before == k.socket:
						want = acceptedAgain
					case before >= 0:
						want = acceptedNewer
					}
					if how != want || want == acceptedNewer && older != before {
						t.Fatalf("accepted as %s over %d, want %s over %d after %v", how, older, want, before, past)
					}
					past = append(past, happening{what, k.socket, k.node, n})
				}
				r.settle(k)
				delete(open, n)
				past = append(past, happening{"settle", k.socket, k.node, n})
			}
			for _, node := range []string{"a", "b"} {
				holder := past.holder(node)
				got, held := r.holders[node]
				if held != (holder >= 0) || held && (got != holder || r.node(got) != node) {
					t.Fatalf("the ingress of %s is %d (%t), want %d after %v", node, got, held, holder, past)
				}
				if slices.Contains(r.nodes(), node) != held {
					t.Fatalf("nodes are %v", r.nodes())
				}
			}
		}
	})
}

// TestTicketsThatAreNotCurrent are those of the steps that random ones seldom take.
func TestTicketsThatAreNotCurrent(t *testing.T) {
	for name, happens := range map[string]func(r *roles[int]){
		"nothing":              func(*roles[int]) {},
		"a loss":               func(r *roles[int]) { r.detach() },
		"another session":      func(r *roles[int]) { r.attach() },
		"an end of custody":    func(r *roles[int]) { r.drop(); r.attach() },
		"an end of its socket": func(r *roles[int]) { r.end(1) },
		"a newer socket": func(r *roles[int]) {
			k, _ := r.claim(2, "a")
			r.accept(k)
			if _, ok := r.claim(1, "a"); ok {
				t.Error("a socket that another replaced registers")
			}
		},
	} {
		r := newRoles[int]()
		r.attach()
		first, _ := r.claim(1, "a")
		r.accept(first)
		k, _ := r.claim(1, "a")
		happens(r)
		if got := r.current(k); got != (name == "nothing") {
			t.Errorf("behind %s it is current: %t", name, got)
		}
	}
	r := newRoles[int]()
	if k, _ := r.claim(1, "a"); r.current(k) {
		t.Error("current without a session")
	}
}

// R72: only the ingress whose registration was accepted pulls the table; every other
// socket is refused by name.
func TestR72_OnlyTheRegisteredIngressPullsTheTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		r.push(cloud, tableOf(1, "k"))
		const ask = `{"knownRevision":null}`
		foreign := func(what string, p *remote) {
			t.Helper()
			if reason := refusedWith(t, p.ask(tableMethod, ask), contract.ClusterIngressNotRegistered); reason != "this socket is no registered ingress" {
				t.Errorf("%s: %s", what, reason)
			}
		}
		unbound := r.node()
		foreign("an unbound socket", unbound)

		pallet := r.node()
		r.conn(pallet.relay).become("node")
		foreign("a Pallet's socket", pallet)
		refusedWith(t, pallet.ask(registerMethod, registrationOf("node-a", "b")), contract.ClusterIngressNotRegistered)
		cloud.none(registerMethod)

		refused := r.node()
		c := refused.start(registerMethod, registrationOf("node-a", "b"))
		q := cloud.next(registerMethod)
		foreign("one that asks before the answer", refused)
		q.Refuse("x", []byte(ownData(contract.IngressBearerRefused)))
		<-c
		foreign("a refused ingress", refused)

		first := r.ingress(cloud, "node-a")
		if a := first.ask(tableMethod, ask); a.body != pushOf(tableOf(1, "k")) {
			t.Errorf("%s, %v", a.body, a.err)
		}
		foreign("another socket of that node", unbound)

		first.own.Cut(typedsocket.CloseNormal, "")
		<-first.relay.Done()
		synctest.Wait()
		foreign("closed and opened again", r.node())
		if got := r.status(); len(got.Ingresses) != 0 {
			t.Errorf("%+v", got.Ingresses)
		}
		if got := r.told(IngressLeft); len(got) != 1 || !strings.HasPrefix(got[0], "ingress-left node=node-a closeCode=") {
			t.Errorf("told %q", got)
		}
		if got := r.metrics.served.Of(servedForeign).Value(); got != 6 {
			t.Errorf("counted %d", got)
		}
	})
}

// TestANewerRegistrationTakesThePlace: of one node, not of another, and the older
// socket is closed.
func TestANewerRegistrationTakesThePlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		other, older := r.ingress(cloud, "node-b"), r.ingress(cloud, "node-a")
		r.push(cloud, tableOf(1, "k"))
		newer := r.ingress(cloud, "node-a")
		select {
		case <-older.own.Done():
		case <-time.After(time.Second):
			t.Fatal("the older socket stands")
		}
		if end, _ := older.relay.Err().(*typedsocket.EndError); end == nil || end.Code != typedsocket.CloseSuperseded {
			t.Errorf("the older socket: %v", older.relay.Err())
		}
		for _, p := range []*remote{other, newer} {
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.err != nil {
				t.Error(a.err)
			}
		}
		r.register(cloud, newer, "node-a") // again, of which nothing is told
		want := []string{"ingress-registered node=node-b outcome=first", "ingress-registered node=node-a outcome=first", "ingress-registered node=node-a outcome=newer-socket"}
		if got := r.told(IngressRegistered, IngressLeft); !slices.Equal(got, want) {
			t.Errorf("told %q", got)
		}
		if got := r.status().Ingresses; len(got) != 2 || got[0].Node != "node-a" || got[1].Node != "node-b" {
			t.Errorf("%+v", got)
		}
		r.push(cloud, tableOf(2, "k"))
		if got := len(newer.got(hintMethod)); got != 1 {
			t.Errorf("%d hints", got)
		}
	})
}

// TestNothingQueuedReachesAnOlderSocket: it is no ingress any more.
func TestNothingQueuedReachesAnOlderSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		older := r.ingress(cloud, "node-a")
		block := make(chan struct{})
		older.on(hintMethod, func(q *typedsocket.Request) { <-block; q.Drop() })
		r.push(cloud, tableOf(5, strings.Repeat("k", 1<<20)))
		synctest.Wait()
		a := older.start(tableMethod, `{"knownRevision":null}`)
		synctest.Wait()
		r.ingress(cloud, "node-a")
		close(block)
		if got := <-a; got.err == nil {
			t.Errorf("%d bytes came", len(got.body))
		}
	})
}

// TestOneSocketBelongsToOneNode.
func TestOneSocketBelongsToOneNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		a := p.ask(registerMethod, registrationOf("node-b", "b"))
		declinedWith(t, a, ownData(contract.IngressRegistrationInvalid))
		if got := textOf(a); !strings.HasSuffix(got, ": nodeId: is not the node this socket belongs to") {
			t.Error(got)
		}
		q := r.node()
		c := q.start(registerMethod, registrationOf("node-c", "b"))
		synctest.Wait()
		declinedWith(t, q.ask(registerMethod, registrationOf("node-b", "b")), ownData(contract.IngressRegistrationInvalid))
		cloud.next(registerMethod).Refuse("x", []byte(ownData(contract.IngressConflict)))
		<-c
		r.register(cloud, q, "node-b") // no longer claimed
		if got := fmt.Sprint(len(cloud.got(registerMethod)), len(r.status().Ingresses)); got != "3 2" {
			t.Error(got)
		}
	})
}

// TestAnAcceptanceThatComesTooLateHoldsNothing: behind an end of custody, a loss, a
// refusal that ends custody, a socket that took another role, and a socket that is
// gone. No role is left, and the ingress is told to come again.
func TestAnAcceptanceThatComesTooLateHoldsNothing(t *testing.T) {
	for name, happens := range map[string]func(r *rig, cloud, p *remote) (told string){
		"custody ended": func(r *rig, cloud, p *remote) string {
			r.DropCustody("relay-node-unknown")
			return ""
		},
		"custody ended and began again": func(r *rig, cloud, p *remote) string {
			r.DropCustody("relay-node-unknown")
			r.SessionRegistered(cloud.relay)
			return ""
		},
		"a refusal was read": func(r *rig, cloud, p *remote) string {
			r.Suspend(cloud.relay)
			return ownData(contract.IngressNotReady)
		},
		"lost": func(r *rig, cloud, p *remote) string {
			r.SessionLost()
			return ownData(contract.IngressNotReady)
		},
		"lost and registered again": func(r *rig, cloud, p *remote) string {
			r.SessionLost()
			r.SessionRegistered(cloud.relay)
			return ownData(contract.IngressNotReady)
		},
		"another role": func(r *rig, cloud, p *remote) string {
			r.conn(p.relay).become("node")
			return ownData(contract.IngressRegistrationInvalid)
		},
		"the socket ended": func(r *rig, cloud, p *remote) string {
			p.own.Cut(typedsocket.CloseNormal, "")
			<-p.relay.Done()
			return ""
		},
		"a newer socket was accepted": func(r *rig, cloud, p *remote) string {
			r.ingress(cloud, "node-a")
			r.ingress(cloud, "node-a")
			return "2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud, p := r.cloudly(), r.node()
				c := p.start(registerMethod, registrationOf("node-a", "b"))
				q := cloud.next(registerMethod)
				told := happens(r, cloud, p)
				q.Answer([]byte(acceptedText))
				a := <-c
				switch told {
				case "":
					if a.err == nil {
						t.Errorf("answered %s", a.body)
					}
				case "2": // the last acceptance wins
					if a.err != nil || len(r.status().Ingresses) != 1 {
						t.Errorf("%v, %+v", a.err, r.status().Ingresses)
					}
					return
				default:
					declinedWith(t, a, told)
				}
				synctest.Wait()
				if got := r.status(); len(got.Ingresses) != 0 || got.InFlight.Registrations != 0 {
					t.Errorf("%+v", got)
				}
				if r.conn(p.relay).Role() == RoleIngress {
					t.Error("the socket was bound")
				}
			})
		})
	}
}

// TestAnAbandonedRegistrationIsGivenUp: the end of its socket ends the wait.
func TestAnAbandonedRegistrationIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Drop()
		p.own.Cut(typedsocket.CloseNormal, "")
		<-p.relay.Done()
		synctest.Wait()
		if got := r.metrics.registrations.Of(registrationAbandoned).Value(); got != 1 || r.status().InFlight.Registrations != 0 {
			t.Errorf("counted %d, %+v", got, r.status())
		}
		if got := r.known(); got != 0 {
			t.Errorf("%d sockets are known", got)
		}
	})
}

// R76, R25: the table is served while Cloudly is away, and roles and table outlive the
// loss and a refusal of another name.
func TestR76_TheTableIsServedWhileCloudlyIsAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		r.push(cloud, tableOf(4, "k"))
		served := func(what, want string) {
			t.Helper()
			if a := p.ask(tableMethod, `{"knownRevision":4}`); a.err != nil || a.body != want {
				t.Errorf("%s: %.300s, %v", what, a.body, a.err)
			}
		}
		r.lose(cloud)
		served("away", pushOf(tableOf(4, "k")))
		if s := r.status(); s.Attached || s.Table.Revision != 4 || len(s.Ingresses) != 1 {
			t.Errorf("%+v", s)
		}
		cloud = r.cloudly()
		served("back", pushOf(tableOf(4, "k")))
		if got := r.push(cloud, tableOf(3, "k")); got != 4 {
			t.Errorf("an older one pushed after the return is answered %d", got)
		}
		r.push(cloud, tableOf(5, "k"))
		served("newer", pushOf(tableOf(5, "k")))
		if got := len(p.got(hintMethod)); got != 2 {
			t.Errorf("%d hints", got)
		}
		// Pushes of a socket that is not the session's change nothing.
		old := cloud
		r.cloudly()
		refusedWith(t, old.ask(pushMethod, pushOf(tableOf(9, "k"))), contract.RelayNotReady)
		refusedWith(t, old.ask(trafficMethod, `{"fromDayUtc":"2026-11-29","toDayUtc":"2026-11-30","limit":5}`), contract.RelayNotReady)
		served("unchanged", pushOf(tableOf(5, "k")))
		var ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if err := r.Pull(ctx, old.relay); err == nil {
			t.Error("a pull without time succeeded")
		}
	})
}
