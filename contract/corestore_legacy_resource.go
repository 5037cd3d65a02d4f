package contract

// maximumLegacyName bounds the name of a legacy database or bucket. It may be
// no canonical name: that is what the blocker not-adoptable says.
const maximumLegacyName = 1024

// LegacyResource is TCorestoreLegacyResource: one database or one bucket that a
// release before 32 created. The capability decides which members it has.
type LegacyResource struct {
	Capability   LegacyCapability
	DatabaseName *string // exactly of a database
	BucketName   *string // exactly of a bucket
	Retention    Raw     // exactly of a bucket: an intent, opaque, or null
	Adoption     LegacyAdoption
}

// LegacyAdoption says whether an operator has authorized a binding to take the
// resource over.
type LegacyAdoption struct {
	State     string         // "unadopted" or "authorized"
	Blocker   *LegacyBlocker // of an unadopted one; nil, null on the wire, when nothing would stop it
	BindingID *string        // exactly of an authorized one; canonical identifier
}

// The states of an adoption.
const (
	LegacyUnadopted  = "unadopted"
	LegacyAuthorized = "authorized"
)

// LegacyBlocker is what would stop an adoption.
type LegacyBlocker string

// The blockers. Only a bucket has a fence lineage.
const (
	LegacyNotAdoptable       LegacyBlocker = "not-adoptable"
	LegacyCredentialsRotated LegacyBlocker = "ordinary-credentials-rotated"
	LegacyOwnedByBinding     LegacyBlocker = "owned-by-binding"
	LegacyFenceConflict      LegacyBlocker = "fence-lineage-conflict"
)

func readLegacyResource(x *LegacyResource) valueReader {
	return object(
		required("capability", text((*string)(&x.Capability))),
		optional("databaseName", pointer(&x.DatabaseName, text)),
		optional("bucketName", pointer(&x.BucketName, text)),
		optional("retention", raw(&x.Retention)),
		required("adoption", readLegacyAdoption(&x.Adoption)),
	)
}

// readLegacyAdoption also judges whether blocker is there, because a blocker
// that is null and one that is missing read alike.
func readLegacyAdoption(x *LegacyAdoption) valueReader {
	return func(r *reader) {
		var stated bool
		blocker := nullable(&x.Blocker, readLegacyBlocker)
		object(
			required("state", text(&x.State)),
			optional("blocker", func(r *reader) { stated = true; blocker(r) }),
			optional("bindingId", pointer(&x.BindingID, text)),
		)(r)
		switch {
		case r.broken:
		case x.State == LegacyUnadopted && !stated:
			r.addAt("blocker", "is missing")
		case x.State == LegacyAuthorized && stated:
			r.addAt("blocker", "is given although the adoption is authorized")
		}
	}
}

func readLegacyBlocker(x *LegacyBlocker) valueReader { return text((*string)(x)) }

func (x LegacyResource) judge(v *verdict) {
	switch x.Capability {
	case LegacyDatabase:
		v.legacyName("databaseName", x.DatabaseName)
		v.require(x.BucketName == nil, "bucketName", "is given for a database")
		v.require(x.Retention == nil, "retention", "is given for a database")
	case LegacyObjectStorage:
		v.legacyName("bucketName", x.BucketName)
		v.require(x.DatabaseName == nil, "databaseName", "is given for an objectstorage")
		if x.Retention == nil {
			v.addAt("retention", "is missing")
		} else {
			v.require(x.Retention.IsNull() || x.Retention.IsObject(), "retention", "is neither an object nor null")
		}
	default:
		v.addAt("capability", "is not a known capability")
	}
	v.enter("adoption")
	x.Adoption.judge(v, x.Capability)
	v.leave()
}

func (v *verdict) legacyName(member string, name *string) {
	if name == nil {
		v.addAt(member, "is missing")
		return
	}
	v.require(*name != "" && len(*name) <= maximumLegacyName, member, "is not 1 to 1024 bytes long")
}

func (x LegacyAdoption) judge(v *verdict, of LegacyCapability) {
	switch x.State {
	case LegacyUnadopted:
		if x.Blocker != nil {
			x.Blocker.judge(v, of)
		}
		v.require(x.BindingID == nil, "bindingId", "is given although the adoption is not authorized")
	case LegacyAuthorized:
		v.require(x.Blocker == nil, "blocker", "is given although the adoption is authorized")
		if x.BindingID == nil {
			v.addAt("bindingId", "is missing")
		} else {
			v.identifier("bindingId", *x.BindingID)
		}
	default:
		v.addAt("state", "is not a known state")
	}
}

func (x LegacyBlocker) judge(v *verdict, of LegacyCapability) {
	switch x {
	case LegacyNotAdoptable, LegacyCredentialsRotated, LegacyOwnedByBinding:
	case LegacyFenceConflict:
		v.require(of != LegacyDatabase, "blocker", "is fence-lineage-conflict of a database")
	default:
		v.addAt("blocker", "is not a known blocker")
	}
}

// AppendJSON appends the resource.
func (x LegacyResource) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("capability", string(x.Capability))
	if x.DatabaseName != nil {
		w.text("databaseName", *x.DatabaseName)
	}
	if x.BucketName != nil {
		w.text("bucketName", *x.BucketName)
	}
	if x.Retention != nil {
		w.value("retention", x.Retention)
	}
	w.value("adoption", x.Adoption)
	return w.end()
}

// AppendJSON appends the adoption.
func (x LegacyAdoption) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("state", x.State)
	switch {
	case x.State == LegacyAuthorized:
	case x.Blocker == nil:
		w.null("blocker")
	default:
		w.text("blocker", string(*x.Blocker))
	}
	if x.BindingID != nil {
		w.text("bindingId", *x.BindingID)
	}
	return w.end()
}
