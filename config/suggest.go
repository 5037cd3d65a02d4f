package config

// suggest returns the name that was probably meant by one that is unknown: the
// nearest of names, when it is no further away than a few slips of a finger.
func suggest(unknown string, names []string) string {
	best, found := len(unknown)/4+1, ""
	for _, name := range names {
		if d := distance(unknown, name); d <= best && (found == "" || d < best) {
			best, found = d, name
		}
	}
	return found
}

// distance is the number of characters to insert, delete or replace between two
// texts (Levenshtein), by rows.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
