package config

// The document's text around the table.
const (
	documentHead = `<!-- Made by "go generate ./config" from the table in config/. Change that, not this. -->

# Configuration

What a relay is told before it starts. What it does for its cluster is not told here: Cloudly pushes that.

[architecture.md](architecture.md) says which rooms exist. Until a room does, what asks for it by a value other than the
default is refused by name: ` + "`hub-workers`, `registry-upstream`, `registry-realm-origin`" + `, and a
` + "`tls-source`" + ` other than ` + "`files`" + `. What stands under ` + "`protocol.corestore`" + ` is read and judged, and changes nothing before there
is such a room.

## Where a value comes from

A flag wins over the environment, the environment over the file, the file over the default. Of several variables of one
setting the first that is set wins. A variable that is set to nothing counts as not set. A flag or a key that is given as
` + "`\"\"`" + ` is given, and means empty: so ` + "`--cloudly-ca-file=`" + ` sets aside the roots that the file names.

The file is YAML, at most 256 KiB, one document, without anchors, aliases and tags. Its keys are the names of the flags
without the dashes. A key that is no setting is refused, and so is one that is given twice. File names that are not
absolute count from the folder in which the relay was started.

` + "```yaml" + `
cloudly-url: https://cloudly.example.com
credential-file: /etc/relay/credential
node-id: node-a
listen: 10.0.4.7:8443
tls-cert-file: /etc/relay/tls.crt
tls-key-file: /etc/relay/tls.key
protocol:
  forward:
    nodeToCloudly: [reportSomethingNew]
` + "```" + `

Every violation is listed at once, with the setting, the place (flag, variable, line of the file) and the rule. Values are
not quoted, since any may have been meant to be secret. What stands in the files that settings name is looked at behind
that, and is said by itself.

## Secrets

Secrets stand in files of their own, named here. A value on the command line, in a variable that begins with ` + "`RELAY_`" + ` (or
is listed below) or in the configuration file that has the shape of a bearer, a JWT or a private key ends the start: the
message names the flag, the variable or the key. Everybody on a host can read its command lines.

` + "`CORESTORE_API_TOKEN`" + ` is ignored and reported once: the token comes sealed from Cloudly.

A variable that begins with ` + "`RELAY_`" + ` and is no setting ends nothing. It is reported, with the name that was probably meant.
`
)

// sectionText stands between a section's heading and its table.
var sectionText = map[string]string{
	sectionListener: `The address is a canonical IPv4 literal. Names, IPv6, loopback, link-local, unspecified, multicast and broadcast addresses
are refused, each by its own name, here and for the hub. ` + "`--allow-loopback`" + ` admits loopback addresses and port 0.

`,
	sectionHub: `Without a hub the relay registers as one that has none. With a new key at each start no node can return to the hub before
Cloudly has told it that key.

`,
	sectionOperator: `An address of any family, a wildcard too. Who reaches it reads the relay's state; there is no secret in it.

`,
	sectionCertificate: `Each source needs its own settings: ` + "`files`" + ` the pair, ` + "`acme`" + ` directory, storage and challenge (with ` + "`dns-01`" + ` also the
server and the TSIG file), ` + "`cloudly`" + ` nothing. What is given for another source is not read, and is reported.

`,
	sectionProtocol: `Names that a release of the peers may have otherwise. The defaults are this product's reading of the contract.

A method name means one thing and passes in one direction: names of the relay's own methods, of methods that never pass
the relay, and names that stand in both lists are refused.

`,
	sectionCorestore: `What the relay calls at a node's Corestore. ` + "`/control/legacy-resources`" + ` and the folder ` + "`/isolated-restore`" + ` are stated by
the contract; the other paths are this product's reading.

`,
}
