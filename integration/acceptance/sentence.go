package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// numbers are the rows and bug reports that a text names, each sorted and once.
type numbers struct{ rows, bugs []int }

var (
	// numberedName begins with its numbers, each with an underscore behind it: TestR61_R62_…, FuzzB118_….
	numberedName = regexp.MustCompile(`^(?:Test|Fuzz)((?:[RBO]\d+_)*)`)
	// hiddenNumber is a number elsewhere in a name, where nobody looks for it.
	hiddenNumber = regexp.MustCompile(`(?:^|_|[a-z])([RB]\d{2,3})(?:_|$)`)
	// numberedSubtest is one part of a subtest's name that begins with a row, such as R47_node.
	numberedSubtest = regexp.MustCompile(`^(R\d\d)(?:_|$)`)
	// head are the numbers that a comment begins with, with the sources that may stand among them.
	head = regexp.MustCompile(`^[RB]\d+(?:(?:, | and | to |–)(?:[RBO]\d+|(?:contract |design )?§[\d.]+|docs/[\w.]+(?: (?:section |§)[\d.]+)?))*: `)
	// reference is one of them, or a range of rows.
	reference = regexp.MustCompile(`([RB])(\d+)(?:(?: to |–)([RB])(\d+))?`)
)

// leastWords is how long what a comment says has to be at least to be a sentence.
const leastWords = 4

// readName returns the numbers of a test function's name.
func readName(name string) (numbers, error) {
	var n numbers
	front := numberedName.FindStringSubmatch(name)
	if front == nil {
		return n, nil
	}
	if m := hiddenNumber.FindStringSubmatch(name[len(front[0]):]); m != nil {
		return n, fmt.Errorf("bears %s behind its front, where it is not looked for", m[1])
	}
	for token := range strings.SplitSeq(strings.TrimSuffix(front[1], "_"), "_") {
		if token != "" && token[0] != 'O' {
			if err := n.add(token[:1], token[1:]); err != nil {
				return n, err
			}
		}
	}
	n.sort()
	return n, nil
}

// readComment returns the numbers and the sentence of a test's comment. The sentence is its first paragraph without the
// numbers, in one line.
func readComment(comment string) (numbers, string, error) {
	text := firstParagraph(comment)
	front := head.FindString(text)
	if text != "" && front == "" {
		return numbers{}, "", errors.New("has a comment that does not begin with its numbers, as in \"R61, R62: …\"")
	}
	var n numbers
	for _, m := range reference.FindAllStringSubmatch(front, -1) {
		if m[4] == "" {
			if err := n.add(m[1], m[2]); err != nil {
				return n, "", err
			}
			continue
		}
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[4])
		if m[1] != "R" || m[3] != "R" || len(m[2]) != 2 || len(m[4]) != 2 || from >= to {
			return n, "", fmt.Errorf("has the range %q, which is none of rows", m[0])
		}
		for number := from; number <= to; number++ {
			n.rows = append(n.rows, number)
		}
	}
	n.sort()
	sentence, err := readSentence(text[len(front):])
	return n, sentence, err
}

// readSentence returns what a comment says that bears no numbers.
func readSentence(comment string) (string, error) {
	sentence := firstParagraph(comment)
	switch words := len(strings.Fields(sentence)); {
	case words == 0:
		return "", errors.New("has no comment that says what it asserts")
	case words < leastWords:
		return "", fmt.Errorf("has a comment of %d words, which is no sentence", words)
	}
	return sentence, nil
}

func firstParagraph(comment string) string {
	paragraph, _, _ := strings.Cut(strings.TrimSpace(comment), "\n\n")
	return strings.Join(strings.Fields(paragraph), " ")
}

// add takes a row in two digits or a bug report in three.
func (n *numbers) add(kind, digits string) error {
	value, _ := strconv.Atoi(digits)
	switch {
	case kind == "R" && len(digits) == 2:
		n.rows = append(n.rows, value)
	case kind == "B" && len(digits) == 3:
		n.bugs = append(n.bugs, value)
	default:
		return fmt.Errorf("bears %s%s; rows have two digits and bug reports three", kind, digits)
	}
	return nil
}

func (n *numbers) sort() {
	for _, list := range []*[]int{&n.rows, &n.bugs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

func (n numbers) none() bool { return len(n.rows) == 0 && len(n.bugs) == 0 }

// lacks names the first number of other that n does not hold.
func (n numbers) lacks(other numbers) string {
	for _, number := range other.rows {
		if !slices.Contains(n.rows, number) {
			return rowName(number)
		}
	}
	for _, number := range other.bugs {
		if !slices.Contains(n.bugs, number) {
			return bugName(number)
		}
	}
	return ""
}

func bugName(number int) string { return fmt.Sprintf("B%03d", number) }
