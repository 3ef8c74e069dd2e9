package abi

// secretsExists tells whether the tool has a secret.
func secretsExists(c *call) (answer, error) {
	var name string
	if err := c.request(field{name: "name", read: text(&name)}); err != nil {
		return answer{}, err
	}
	if c.session.Secrets == nil {
		return answer{}, unavailable("the tool has no secrets")
	}
	exists, denial := c.session.Secrets.Check(name)
	if denial != nil {
		return answer{}, denied(*denial)
	}
	return answerJSON(statusOK, struct {
		Exists bool `json:"exists"`
	}{exists}), nil
}
