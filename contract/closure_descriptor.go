package contract

// DatabaseClosureDescriptor is ICorestoreDatabaseClosureDescriptor: what a
// database closure is before its first byte arrives (contract §12.4). The size
// is mandatory and exact, because Corestore takes a closure only under one exact
// Content-Length.
//
// Of the limits of a closure only those of its own size and of the receipt can
// be judged here. The 96 MiB of the snapshot payload (framed one byte more) and
// the 128 MiB of the plaintext bound what is inside; the seeds do not name
// their members in a receipt, and Corestore holds them itself.
type DatabaseClosureDescriptor struct {
	Size    int64  // bytes, 1 to ClosureLimit
	SHA256  string // bare, of those bytes
	Receipt ClosureReceipt
}

// ClosureReceipt is Corestore's receipt of the backup that the closure holds. Of
// its members the two are read that say what the closure is.
type ClosureReceipt struct {
	ArchiveBytes int64  // closure.archiveBytes
	SHA256       string // closure.sha256
	Encoded      Raw    // the whole receipt as it came, at most PackageMetadataLimit
}

// NewDatabaseClosureDescriptor describes a closure by what was measured and by
// its receipt. The error is an *InvalidError, also where the two differ.
func NewDatabaseClosureDescriptor(size int64, sha256 string, receipt Raw) (DatabaseClosureDescriptor, error) {
	w := beginObject(nil)
	w.integer("size", size)
	w.text("sha256", sha256)
	w.value("receipt", receipt)
	return ReadDatabaseClosureDescriptor(w.end())
}

// ReadDatabaseClosureDescriptor reads a descriptor that stands alone.
func ReadDatabaseClosureDescriptor(body []byte) (DatabaseClosureDescriptor, error) {
	return readAs[DatabaseClosureDescriptor]("database closure descriptor", body, 0)
}

func readDatabaseClosureDescriptor(x *DatabaseClosureDescriptor) valueReader { return x.shape() }

func (x *DatabaseClosureDescriptor) shape() valueReader {
	return object(
		required("size", integer(&x.Size)),
		required("sha256", text(&x.SHA256)),
		required("receipt", readClosureReceipt(&x.Receipt)),
	)
}

func readClosureReceipt(x *ClosureReceipt) valueReader {
	return kept(&x.Encoded, openObject(
		required("closure", openObject(
			required("archiveBytes", integer(&x.ArchiveBytes)),
			required("sha256", text(&x.SHA256)),
		)),
	))
}

// Validate returns one named reason for each violation.
func (x DatabaseClosureDescriptor) Validate() []string { return reasonsOf(x.judge) }

func (x DatabaseClosureDescriptor) judge(v *verdict) {
	v.counter("size", x.Size)
	v.require(x.Size <= ClosureLimit, "size", "is larger than 256 MiB")
	v.require(x.Size == x.Receipt.ArchiveBytes, "size", "is not receipt.closure.archiveBytes")
	v.sha256("sha256", x.SHA256)
	v.require(x.SHA256 == x.Receipt.SHA256, "sha256", "is not receipt.closure.sha256")
	v.require(len(x.Receipt.Encoded) <= PackageMetadataLimit, "receipt", "is larger than 16 KiB")
}

// AppendJSON appends the descriptor, the receipt as it came.
func (x DatabaseClosureDescriptor) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("size", x.Size)
	w.text("sha256", x.SHA256)
	w.value("receipt", x.Receipt)
	return w.end()
}

// AppendJSON appends the receipt as it came.
func (x ClosureReceipt) AppendJSON(dst []byte) []byte { return x.Encoded.AppendJSON(dst) }
