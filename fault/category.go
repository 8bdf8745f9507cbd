package fault

// Category groups codes by who has to act. It is also what dashboards and alerts group by.
type Category string

// The ten categories; there are no others.
const (
	CategoryValidation          Category = "VALIDATION"           // the request is malformed: the caller must change it
	CategoryUnauthenticated     Category = "UNAUTHENTICATED"      // nobody is known to be calling
	CategoryForbidden           Category = "FORBIDDEN"            // the caller is known and may not
	CategoryNotFound            Category = "NOT_FOUND"            // there is no such thing
	CategoryConflict            Category = "CONFLICT"             // the state of the thing, or another caller, is in the way
	CategoryPrecondition        Category = "PRECONDITION"         // a condition that the caller stated, or had to state, does not hold
	CategoryRateLimited         Category = "RATE_LIMITED"         // too often
	CategoryDataIntegrity       Category = "DATA_INTEGRITY"       // the change would break a rule of the data
	CategoryTransientDependency Category = "TRANSIENT_DEPENDENCY" // something we call is unwell
	CategoryInternal            Category = "INTERNAL"             // a defect or a misconfiguration of ours
)

// Valid reports whether c is one of the ten categories.
func (c Category) Valid() bool {
	switch c {
	case CategoryValidation, CategoryUnauthenticated, CategoryForbidden, CategoryNotFound, CategoryConflict, CategoryPrecondition, CategoryRateLimited, CategoryDataIntegrity, CategoryTransientDependency, CategoryInternal:
		return true
	}
	return false
}
