package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// A row of the contract's feature table (§22), in our words, with the room whose duty it is. Whether that room exists
// says the table of rooms in docs/architecture.md.
type row struct {
	number int
	room   string
	title  string
}

func (r row) name() string { return rowName(r.number) }

func rowName(number int) string { return fmt.Sprintf("R%02d", number) }

var rows = []row{
	{1, "contract", "node ids by their own rule, at every member that names a node"},
	{2, "contract", "canonical identifiers"},
	{3, "typedsocket", "strict JSON frames: names given twice, bad UTF-8, trailing data, depth"},
	{4, "contract", "exact members of every shape of the relay's own"},
	{5, "contract", "canonical JSON: names by UTF-16 code units, plain safe integers"},
	{6, "contract", "the digest of every DNS renewal is made again"},
	{7, "config", "the own protocol offer is judged before anything is bound"},
	{8, "cloudly", "the offer on both registrations, negotiated in a fixed order"},
	{9, "cloudly", "300,000 ms between a protocol refusal and the next offer"},
	{10, "cloudly", "answers are judged: the peer's offer, and refusals that are none"},
	{11, "cloudly", "the bearer's file: shape, no line end, permissions"},
	{12, "cloudly", "authentication first on every socket, over WebSocket alone"},
	{13, "cloudly", "the registration states exactly what was bound"},
	{14, "config", "listen addresses that nodes cannot reach are refused by name"},
	{15, "cloudly", "the hub in the registration is optional, and judged"},
	{16, "cloudly", "the registration's number: from 0, growing, not used by a refusal"},
	{17, "cloudly", "a lost answer to the registration"},
	{18, "tls", "the origin against certificate and port"},
	{19, "cloudly", "references of credential and registration, shown without a secret"},
	{20, "cloudly", "relay-cluster-not-enabled ends custody"},
	{21, "cloudly", "relay-node-foreign ends custody"},
	{22, "cloudly", "relay-node-unknown ends custody"},
	{23, "cloudly", "relay-sequence-not-advancing ends custody"},
	{24, "cloudly", "relay-credential-generation-stale ends custody"},
	{25, "cloudly", "any other refusal keeps custody"},
	{26, "cloudly", "reconnecting with growing waits, and registering anew"},
	{27, "cloudly", "a configuration push changes endpoints or ends custody, on the same socket"},
	{28, "forward", "many nodes over one socket to Cloudly"},
	{29, "forward", "a node's registration and its answer, byte for byte"},
	{30, "forward", "a node's bearer is not retained"},
	{31, "forward", "a node speaks for itself alone"},
	{32, "forward", "rotation and replay on the live socket"},
	{33, "forward", "a second node on one socket is refused"},
	{34, "forward", "the newer socket of a node supersedes"},
	{35, "forward", "pushes go to the socket of the session that they name"},
	{36, "forward", "each named method from nodes to Cloudly passes"},
	{37, "forward", "each named method from Cloudly to nodes passes"},
	{38, "forward", "wrong directions and methods that never pass are refused"},
	{39, "forward", "what only Cloudly sends is refused from the node listener"},
	{40, "listener", "registrations over HTTP are refused"},
	{41, "forward", "nothing is queued across an outage"},
	{42, "forward", "nodes register again after a return of Cloudly"},
	{43, "forward", "a node's VPN credential is forwarded and never kept"},
	{44, "forward", "historical bodies pass under a current session"},
	{45, "escrow", "a hold is counted, replaced, emptied"},
	{46, "escrow", "at most 32 renewals and four hours"},
	{47, "escrow", "structure and order of a run"},
	{48, "escrow", "holds for nodes not carried, foreign sessions and stale runs are refused"},
	{49, "escrow", "a refused hold changes nothing"},
	{50, "escrow", "release only while Cloudly is away"},
	{51, "escrow", "only the current window, the highest sequence of it"},
	{52, "escrow", "pushed with the node's own binding and the bytes that were signed"},
	{53, "escrow", "an early refusal is retried; an answer counts for what was sent alone"},
	{54, "escrow", "the return of Cloudly stops the release"},
	{55, "escrow", "held in memory only"},
	{56, "hub", "bound before the registration, empty at first, then pulls"},
	{57, "hub", "every bound of a network"},
	{58, "hub", "order, uniqueness, control prefix and grants of a network"},
	{59, "hub", "a network is accepted, a replay, stale or foreign"},
	{60, "hub", "the answer to a network: applied revision and state"},
	{61, "hub", "Noise authentication by the network's keys"},
	{62, "hub", "packets pass by directed grant"},
	{63, "hub", "spoofed sources are dropped"},
	{64, "hub", "withdrawal by omission"},
	{65, "hub", "expiry is enforced by the hub, without Cloudly as well"},
	{66, "hub", "memberships continue across revisions"},
	{67, "hub", "throughput and bounded memory"},
	{68, "ingress", "the greatest revision stays; pull after registration; null is a fact"},
	{69, "ingress", "route tables are judged, and no reason holds a secret"},
	{70, "ingress", "one registration over both hops, its body untouched"},
	{71, "ingress", "refusals are forwarded untouched"},
	{72, "ingress", "only the accepted connection pulls the table"},
	{73, "ingress", "the change hint carries the revision alone"},
	{74, "ingress", "an ingress's bearer is kept nowhere"},
	{75, "ingress", "traffic statistics, page by page"},
	{76, "ingress", "the table is served during an outage"},
	{77, "corestore", "endpoints come from the cluster document alone"},
	{78, "corestore", "inventory: two states that are never mixed"},
	{79, "corestore", "legacy inventory"},
	{80, "corestore", "backup, restore and prune, each at the node that is named"},
	{81, "corestore", "closure upload under its exact descriptor"},
	{82, "corestore", "closure restore: exact length, and identity"},
	{83, "corestore", "bounds of a closure"},
	{84, "corestore", "isolated restore: control untouched, no control token"},
	{85, "corestore", "isolated restore: progress normalized, with its node"},
	{86, "corestore", "isolated restore: the three refusals"},
	{87, "corestore", "a chunk of 512 KiB passes, the limit of frames holds"},
	{88, "corestore", "a recipient is enrolled, and the token sealed to it"},
	{89, "corestore", "the control token: its rule, and where it is not"},
	{90, "corestore", "platform state is pulled, refusals are mapped"},
	{91, "tls", "TLS under the origin's certificate, exchanged without a restart"},
	{92, "registry", "image pulls through the origin"},
	{93, "listener", "the largest report and projection pass, larger frames do not"},
	{94, "duty", "one logging function, and no secret in any output"},
	{95, "operator", "the health endpoint"},
	{96, "cmd/relay", "a read-only root and no privileges are enough"},
	{97, "appliance", "graceful stop, and endurance"},
}

// ground are the rooms whose tests may bear a row whose own room comes later: what the row will stand on. The row is not
// held by them.
var ground = []string{"contract", "duty", "typedsocket", "simulate"}

// A level says of what a test speaks. The order is that of the page.
type level int

const (
	program   level = iota // the built relay, as a process, between peers
	appliance              // all duties in one process, in fake time
	room                   // one room or several without the rest
	peer                   // a simulated peer: nothing of the relay
)

func (l level) String() string {
	return [...]string{"program", "relay", "room", "peer"}[l]
}

// levels gives a package's level by its folder, the longest that fits.
var levels = map[string]level{
	"integration/startup": program,
	"integration/session": program,
	"integration/escrow":  program,
	"integration/ingress": program,
	"integration/hub":     program,
	"integration/netns":   program,
	"integration/bench":   program,
	"integration/soak":    program,
	"integration/demo":    program,
	"demo":                program,
	"appliance":           appliance,
	"simulate":            peer,
	"integration/carrier": room,
	"integration/peers":   room,
	"integration/rules":   room,
	"cmd/relay":           room,
	"config":              room,
	"contract":            room,
	"duty":                room,
	"typedsocket":         room,
	"cloudly":             room,
	"listener":            room,
	"forward":             room,
	"escrow":              room,
	"hub":                 room,
	"corestore":           room,
	"ingress":             room,
	"registry":            room,
	"tls":                 room,
	"operator":            room,
}

func levelOf(folder string) (level, bool) {
	for at := folder; at != "."; at = parentOf(at) {
		if l, ok := levels[at]; ok {
			return l, true
		}
	}
	return 0, false
}

func parentOf(folder string) string {
	return filepath.ToSlash(filepath.Dir(filepath.FromSlash(folder)))
}

// roomRow is a row of the table of rooms: folder, job, state. integration/rules compares the same table with the tree.
var roomRow = regexp.MustCompile("(?m)^\\| `([a-z/]+)/` \\| .* \\| (here|later) \\|$")

// readRooms returns which rooms there are, by docs/architecture.md, and whether each exists.
func readRooms(root string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, m := range roomRow.FindAllSubmatch(text, -1) {
		found[string(m[1])] = string(m[2]) == "here"
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("docs/architecture.md holds no table of rooms")
	}
	return found, nil
}
