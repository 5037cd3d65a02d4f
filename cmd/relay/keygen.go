package main

import (
	"crypto/rand"
	"errors"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/credential"
)

const aboutKeygen = `usage: relay keygen --out=FILE
       relay keygen --public=FILE

Makes the key of a hub or of a node: a private one into a new file, and the public one
that belongs to it on standard output. The private key is shown nowhere.

  --out=FILE
      Where to make the file, with mode 0600. One that exists is left as it is, and
      nothing is made. relay serve takes it as --hub-key-file, the credential of relay
      node as private-key-file.
  --public=FILE
      Makes nothing, and says the public key of the private one in a file.

Exit codes: 0 the public key stands on standard output; 1 the file of --public is no
private key that its owner alone can read; 2 the file could not be made, or standard
output did not take the answer: the file of --out is there then, and --public says its
public key; 64 the command line was not understood.
`

// keygenVerb is `relay keygen`.
type keygenVerb struct {
	Out    given `name:"out"`
	Public given `name:"public"`
}

func (*keygenVerb) name() string    { return "keygen" }
func (*keygenVerb) summary() string { return "make the key of a hub or a node, or say its public half" }
func (*keygenVerb) help() string    { return aboutKeygen }
func (v *keygenVerb) fields() any   { return v }

// judge wants one of both flags.
func (v *keygenVerb) judge() error {
	if (v.Out.text == "") == (v.Public.text == "") {
		return errors.New("one of --out and --public is needed, with the name of a file")
	}
	return nil
}

func (v *keygenVerb) run(p process) int {
	if err := p.prepare(); err != nil {
		say(p.stderr, "a dump of this process could show the key: "+plain(err))
	}
	if v.Public.text != "" {
		key, err := credential.ReadKey(v.Public.text)
		if err != nil {
			say(p.stderr, "--public: "+plain(err))
			return exitConfiguration
		}
		return p.print(key.Public().String() + "\n")
	}
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err == nil {
		err = credential.Create(v.Out.text, key)
	}
	if err != nil {
		say(p.stderr, "--out: "+plain(err))
		return exitFailed
	}
	return p.print(key.Public().String() + "\n")
}
