package manifests

// LoadPolicy reads and checks the policy in a file, such as caisson.yaml. It fails as
// [Load] does.
func LoadPolicy(path string) (*Policy, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicy(path, source)
}

// ParsePolicy checks a policy and fills in its defaults. The file's name says how to read
// it, as for [Parse], what the origins of grants begin with, and to which folder relative
// paths are joined. The error is an [*Error] with everything that is wrong.
func ParsePolicy(file string, source []byte) (*Policy, error) {
	r := &reader{file: file, subject: policySubject}
	root := r.document(source)
	if root == nil {
		return nil, newError(r.problems)
	}
	p := r.policy(root)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	return p, nil
}
