package check

// isFailure reports whether the controller must take the answer for a failure:
// a pod that is gone already needs no deleting, adopting or releasing.
func isFailure(a *answer) bool {
	switch {
	case a.response.OK():
		return false
	case a.verb == callDelete, a.publication != nil:
		return a.response.Code != 404
	case a.verb == callClaim:
		return a.response.Code != 404 && a.response.Code != 422
	}
	return true
}
