package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

// word is planted wherever a peer can put a text, and marker is long, so that memory
// used again for another message still shows some of it.
const word = "a-secret-marker."

var marker = strings.Repeat(word, 180)

// notKept looks for the word in everything that is retained or shown: where says
// where the room may hold it.
func (r *rig) notKept(where string) {
	r.t.Helper()
	synctest.Wait()
	r.seen.mu.Lock()
	if len(r.seen.all) == 0 {
		r.t.Error("no message was seen")
	}
	for _, p := range r.seen.all {
		if at := bytes.Index(p, []byte(word)); at >= 0 {
			r.t.Errorf("a message's memory still holds it: %.80q", p[at-min(40, at):])
		}
	}
	r.seen.all = nil
	r.seen.mu.Unlock()
	if at := carriertest.Reachable(r.Ingress, word, "ingress"); at != where {
		r.t.Errorf("it is held at %q, want %q", at, where)
	}
	for where, text := range r.shown() {
		if strings.Contains(text, word) {
			r.t.Errorf("it is shown by the %s", where)
		}
		if text == "" {
			r.t.Errorf("there is no %s", where)
		}
	}
}

// watch keeps messages' memory from now on.
func (r *rig) watch() { r.seen.mu.Lock(); r.seen.keep = true; r.seen.mu.Unlock() }

// R74: the bearer is kept nowhere, whatever becomes of the registration.
func TestR74_TheBearerIsKeptNowhere(t *testing.T) {
	good := registrationOf("node-a", marker)
	for name, run := range map[string]func(r *rig, cloud, p *remote){
		"accepted": func(r *rig, cloud, p *remote) {
			c := p.start(registerMethod, good)
			cloud.next(registerMethod).Answer([]byte(acceptedText))
			<-c
		},
		"declined": func(r *rig, cloud, p *remote) {
			for _, reason := range contract.IngressRegistrationReasons().Names() {
				c := p.start(registerMethod, good)
				cloud.next(registerMethod).Refuse("x", []byte(ownData(reason)))
				<-c
			}
		},
		"misanswered": func(r *rig, cloud, p *remote) {
			c := p.start(registerMethod, good)
			cloud.next(registerMethod).Answer([]byte(`{"accepted":"yes"}`))
			<-c
		},
		"invalid": func(r *rig, cloud, p *remote) {
			for _, body := range []string{
				strings.Replace(good, `"nodeId"`, `"`+word+`":"`+word+`","nodeId"`, 1),
				strings.Replace(good, `"node-a"`, `"`+marker+`"`, 1),
				strings.Replace(good, `"3.0.0"`, `"`+marker+`"`, 1),
				strings.Replace(good, `"32.40.1"`, `"`+word+`"`, 1),
				strings.Replace(good, `"bearer":`, `"bearer":"x","bearer":`, 1),
				strings.Replace(good, `"bearer":"`, `"bearer":["`, 1),
			} {
				if a := p.ask(registerMethod, body); strings.Contains(textOf(a), word) || a.err == nil {
					t.Errorf("refused with %q, %v", textOf(a), a.err)
				}
			}
		},
		"incompatible": func(r *rig, cloud, p *remote) {
			p.ask(registerMethod, strings.Replace(good, offerText, `{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`, 1))
		},
		"foreign": func(r *rig, cloud, p *remote) {
			r.conn(p.relay).become("node")
			p.ask(registerMethod, good)
		},
		"not ready": func(r *rig, cloud, p *remote) {
			r.SessionLost()
			p.ask(registerMethod, good)
		},
		"another node's socket": func(r *rig, cloud, p *remote) {
			r.register(cloud, p, "node-b")
			p.ask(registerMethod, good)
		},
		"unanswered": func(r *rig, cloud, p *remote) {
			c := p.start(registerMethod, good)
			cloud.next(registerMethod).Drop()
			<-c
		},
		"given up by the ingress": func(r *rig, cloud, p *remote) {
			p.start(registerMethod, good)
			cloud.next(registerMethod).Drop()
			p.own.Cut(typedsocket.CloseNormal, "")
			<-p.relay.Done()
		},
		"custody ends": func(r *rig, cloud, p *remote) {
			p.start(registerMethod, good)
			cloud.next(registerMethod).Drop()
			r.DropCustody("relay-node-unknown")
			<-p.relay.Done()
		},
		"lost": func(r *rig, cloud, p *remote) {
			c := p.start(registerMethod, good)
			cloud.next(registerMethod).Drop()
			r.lose(cloud)
			<-c
		},
		"void": func(r *rig, cloud, p *remote) {
			c := p.start(registerMethod, good)
			q := cloud.next(registerMethod)
			r.conn(p.relay).become("node")
			q.Answer([]byte(acceptedText))
			<-c
		},
		"panic": func(r *rig, cloud, p *remote) {
			r.conn(p.relay).fails = errors.New(word)
			c := p.start(registerMethod, good)
			cloud.next(registerMethod).Answer([]byte(acceptedText))
			<-c
			r.conn(p.relay).fails = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud, p := r.cloudly(), r.node()
				r.watch()
				run(r, cloud, p)
				r.notKept("")
			})
		})
	}
}

// violations are tables that break one rule each, with the word in every value and
// under every name that a peer can choose, and the reasons that they are refused with.
func violations() map[string]string {
	secrets := fmt.Sprintf(`"certificate":{"privateKey":%[1]q,%[1]q:%[1]q},"basicAuth":{"user":%[1]q,"password":%[1]q},%[1]q:[%[1]q]`, word)
	route := `{"hostname":"` + word + `","destinations":[{"address":"10.0.0.1","port":1}],` + secrets + `}`
	port := `{"transport":"tcp","port":1,"destinations":[],` + secrets + `}`
	quoted := `"` + word + `"`
	table := func(revision, issued, routes, ports, more string) string {
		return `{"revision":` + revision + `,"issuedAt":` + issued + `,"routes":` + routes + `,"portRoutes":` + ports + more + `}`
	}
	inRoute := func(old, next string) string {
		return table("9", "1", `[`+strings.Replace(route, old, next, 1)+`]`, `[`+port+`]`, "")
	}
	inPort := func(old, next string) string {
		return table("9", "1", `[`+route+`]`, `[`+strings.Replace(port, old, next, 1)+`]`, "")
	}
	all := `[` + route + `]`
	ports := `[` + port + `]`
	return map[string]string{
		table(quoted, "1", all, ports, ""):                              "table.revision: is not a number",
		table("0", "1", all, ports, ""):                                 "table.revision: is not a counter",
		table("1.5", "1", all, ports, ""):                               "table.revision: is not a plain safe integer",
		table("9", quoted, all, ports, ""):                              "table.issuedAt: is not a number",
		table("9", "-1", all, ports, ""):                                "table.issuedAt: is not a time in unix milliseconds",
		table("9", "1", quoted, ports, ""):                              "table.routes: is not an array",
		table("9", "1", all, quoted, ""):                                "table.portRoutes: is not an array",
		table("9", "1", all, ports, `,`+quoted+`:`+quoted):              "table: unknown member",
		table("9", "1", all, ports, `,"revision":10`):                   "table.revision: is given twice",
		table("9", "1", `[`+route+`,`+route+`]`, ports, ""):             "table.routes[1].hostname: repeats the hostname of an earlier route",
		table("9", "1", all, `[`+port+`,`+port+`]`, ""):                 "table.portRoutes[1].port: repeats the transport and port of an earlier route",
		table("9", "1", `[`+quoted+`]`, ports, ""):                      "table.routes[0]: is not an object",
		table("9", "1", all, `[`+quoted+`]`, ""):                        "table.portRoutes[0]: is not an object",
		inRoute(`"hostname":"`+word+`",`, ""):                           "table.routes[0].hostname: is missing",
		inRoute(`"hostname":"`+word+`"`, `"hostname":{"x":"`+word+`"}`): "table.routes[0].hostname: is not a string",
		inRoute(`"hostname":"`+word+`"`, `"hostname":"`+word+` x"`):     "table.routes[0].hostname: is not a hostname",
		inRoute(`"10.0.0.1"`, quoted):                                   "table.routes[0].destinations[0].address: is not a unicast ipv4 literal",
		inRoute(`"port":1`, `"port":`+quoted):                           "table.routes[0].destinations[0].port: is not a number",
		inRoute(`"port":1`, `"port":65536`):                             "table.routes[0].destinations[0].port: is not a port",
		inRoute(`"port":1`, `"port":1,`+quoted+`:1`):                    "table.routes[0].destinations[0]: unknown member",
		inRoute(`[{"address":"10.0.0.1","port":1}]`, quoted):            "table.routes[0].destinations: is not an array",
		inPort(`"tcp"`, quoted):                                         "table.portRoutes[0].transport: is neither tcp nor udp",
		inPort(`"port":1`, `"port":`+quoted):                            "table.portRoutes[0].port: is not a number",
		inPort(`[]`, `[{"address":`+quoted+`,"port":1}]`):               "table.portRoutes[0].destinations[0].address: is not a unicast ipv4 literal",
		quoted:                              "table: is not an object",
		table("0", "-1", quoted, ports, ""): "table.routes: is not an array",
	}
}

// R69: tables that break a rule, pushed and pulled, are each refused by name, the
// reason names members, nothing of them is quoted, kept or shown, and the one held
// stays.
func TestR69_TablesThatBreakARule(t *testing.T) {
	for table, reason := range violations() {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			cloud := r.cloudly()
			p := r.ingress(cloud, "node-a")
			r.push(cloud, tableOf(3, "held"))
			r.watch()
			a := cloud.ask(pushMethod, pushOf(table))
			if got := refusedWith(t, a, RouteTableInvalid); got != reason {
				t.Errorf("%s:\nrefused with %q, want %q", table, got, reason)
			}
			cloud.on(pullMethod, func(q *typedsocket.Request) { q.Answer([]byte(pushOf(table))) })
			var invalid *contract.InvalidError
			if err := r.Pull(context.Background(), cloud.relay); !errors.As(err, &invalid) || strings.Contains(err.Error(), word) {
				t.Errorf("%s: pulled with %v", table, err)
			} else if got := reasonsOf(err); got != reason {
				t.Errorf("%s:\npulled with %q, want %q", table, got, reason)
			}
			r.notKept("")
			if got := r.told(RouteTableRefused); len(got) != 2 || got[0] != "route-table-refused outcome=pushed error=invalid-message" ||
				got[1] != "route-table-refused outcome=pulled error=invalid-message" {
				t.Errorf("told %q", got)
			}
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.body != pushOf(tableOf(3, "held")) {
				t.Errorf("%s: served %.300s, %v", table, a.body, a.err)
			}
			if got := len(p.got(hintMethod)); got != 1 {
				t.Errorf("%d hints", got)
			}
		})
	}
}

// R69: a whole table is shown by nothing, and is held in the one memory that is meant
// for it; what it travelled in is zeroed.
func TestR69_AWholeTableIsShownByNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		r.watch()
		table := strings.Replace(tableOf(5, marker), "a.example", word, 1)
		r.push(cloud, table)
		const held = "ingress.table.answer"
		r.notKept(held)
		if a := p.ask(tableMethod, `{"knownRevision":null}`); a.body != pushOf(table) {
			t.Error("the table changed")
		}
		r.notKept(held)
		if err := r.pull(cloud, pushOf(strings.Replace(table, `"revision":5`, `"revision":6`, 1))); err != nil {
			t.Error(err)
		}
		r.notKept(held)
		if got := r.push(cloud, table); got != 6 { // an older one
			t.Errorf("answered %d", got)
		}
		r.notKept(held)
		synctest.Wait()
		r.seen.all = append(r.seen.all, nil)
		r.DropCustody("relay-node-unknown")
		r.notKept("")
	})
}

// R94: pages, errors and acknowledgements of an ingress are shown nowhere.
func TestR94_WhatAnIngressAnswersIsNotShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		p.on(hintMethod, func(q *typedsocket.Request) { q.Refuse(word+": x", []byte(`{"code":"`+word+`"}`)) })
		p.on(trafficMethod, func(q *typedsocket.Request) { q.Refuse(word+": x", []byte(`{"code":"`+word+`"}`)) })
		r.push(cloud, tableOf(1, "k"))
		a := cloud.ask(trafficMethod, questionOf(nil))
		declinedWith(t, a, `{"code":"`+word+`"}`)
		p.ask(tableMethod, `{"`+word+`":1}`)
		p.ask(word, `{"`+word+`":1}`)
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Refuse(word, []byte(`{"code":"`+word+`"}`))
		<-c
		for where, text := range r.shown() {
			if strings.Contains(text, word) {
				t.Errorf("it is shown by the %s", where)
			}
		}
	})
}
