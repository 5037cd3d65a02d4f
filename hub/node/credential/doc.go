// Package credential is the files that a node's identity stands in: the managed VPN
// credential (contract §7.4), which names the hub, and a private key on its own.
//
// # The credential
//
// A YAML mapping with exactly these keys, each once:
//
//	hub: 192.0.2.10:4433             # the hub's UDP address and port; no name
//	hub-public-key: ywlpIi…=         # what the hub is known by
//	authority-id: network-authority  # at most 128 bytes
//	private-key: 6PBfTD…=            # the node's identity; or
//	private-key-file: node.key       # the file of it, looked for beside the credential
//	expires-at: 1764547200000        # Unix milliseconds or RFC 3339; may be left out
//
// Keys are the canonical base64 of 32 bytes (contract §2.2). Which node the credential
// is for, the hub knows by the public half of the private key.
//
// # The private key
//
// The canonical base64 of 32 bytes; an end of line behind it is accepted. It is what
// the relay's hub-key-file has, too.
//
// # What it promises
//
//   - A file is read only if it is a regular one that nobody but its owner may read or
//     write; a pipe is refused and not waited for.
//   - What is wrong has a name ([Error]) and, where there is one, a line. No error has
//     anything of the content.
//   - [Create] makes a key file that was not there before, with mode 0600 from its first
//     moment on, or leaves none. What it made outlives a loss of power.
//   - A [Watcher] finds another content within [LookEvery] and at once when asked, and
//     does not take a half-written file for a wrong one. A panic while it reads or tells is
//     logged without its value, and it looks again.
//
// # What it never does
//
// It judges no times and changes no file that exists. It resolves no name.
//
// # Goroutines and locks
//
// A Watcher has one, which Run's caller owns, and while a file is read one more: a file
// system that does not answer keeps it until it does, and no other is begun meanwhile.
// There are no locks.
//
// # Limits
//
// A credential has at most 4 KiB, which is six times the longest; a key file 128 bytes.
package credential
