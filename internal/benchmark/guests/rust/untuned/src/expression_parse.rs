/// The values of a to d.
pub type Variables = [i64; 4];

/// A formula or a part of one. Numbers wrap around, and dividing by zero gives zero.
pub trait Formula {
    fn value(&self, variables: &Variables) -> i64;
}

struct Constant(i64);

struct Variable(usize);

struct Unary {
    apply: fn(i64) -> i64,
    operand: Box<dyn Formula>,
}

struct Binary {
    apply: fn(i64, i64) -> i64,
    left: Box<dyn Formula>,
    right: Box<dyn Formula>,
}

struct Choice {
    condition: Box<dyn Formula>,
    then: Box<dyn Formula>,
    otherwise: Box<dyn Formula>,
}

impl Formula for Constant {
    fn value(&self, _: &Variables) -> i64 {
        self.0
    }
}

impl Formula for Variable {
    fn value(&self, variables: &Variables) -> i64 {
        variables[self.0]
    }
}

impl Formula for Unary {
    fn value(&self, variables: &Variables) -> i64 {
        (self.apply)(self.operand.value(variables))
    }
}

impl Formula for Binary {
    fn value(&self, variables: &Variables) -> i64 {
        (self.apply)(self.left.value(variables), self.right.value(variables))
    }
}

impl Formula for Choice {
    fn value(&self, variables: &Variables) -> i64 {
        if self.condition.value(variables) != 0 {
            self.then.value(variables)
        } else {
            self.otherwise.value(variables)
        }
    }
}

fn is_less(a: i64, b: i64) -> i64 {
    i64::from(a < b)
}

fn divide(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

fn remainder(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// Reads a formula by recursive descent.
struct Parser<'a> {
    text: &'a str,
}

type Parsed = Option<Box<dyn Formula>>;

fn binary(apply: fn(i64, i64) -> i64, left: Box<dyn Formula>, right: Box<dyn Formula>) -> Box<dyn Formula> {
    Box::new(Binary { apply, left, right })
}

pub fn parse(text: &str) -> Parsed {
    let mut parser = Parser { text };
    let parsed = parser.comparison()?;
    parser.peek().is_none().then_some(parsed)
}

impl<'a> Parser<'a> {
    /// Returns the next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        self.text = self.text.trim_start_matches(' ');
        self.text.chars().next()
    }

    /// Reads the character if it is the next.
    fn accept(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.text = &self.text[wanted.len_utf8()..];
        }
        is_next
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.accept(wanted).then_some(())
    }

    /// Reads what consists of such characters.
    fn take(&mut self, is_part: fn(char) -> bool) -> &'a str {
        let end = self.text.find(|character| !is_part(character)).unwrap_or(self.text.len());
        let (taken, rest) = self.text.split_at(end);
        self.text = rest;
        taken
    }

    fn comparison(&mut self) -> Parsed {
        let mut left = self.sum()?;
        while self.accept('<') {
            left = binary(is_less, left, self.sum()?);
        }
        Some(left)
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            if self.accept('+') {
                left = binary(i64::wrapping_add, left, self.product()?);
            } else if self.accept('-') {
                left = binary(i64::wrapping_sub, left, self.product()?);
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.factor()?;
        loop {
            if self.accept('*') {
                left = binary(i64::wrapping_mul, left, self.factor()?);
            } else if self.accept('/') {
                left = binary(divide, left, self.factor()?);
            } else if self.accept('%') {
                left = binary(remainder, left, self.factor()?);
            } else {
                return Some(left);
            }
        }
    }

    fn factor(&mut self) -> Parsed {
        match self.peek()? {
            '-' => {
                self.expect('-')?;
                Some(Box::new(Unary { apply: i64::wrapping_neg, operand: self.factor()? }))
            }
            '(' => {
                self.expect('(')?;
                let inner = self.comparison()?;
                self.expect(')')?;
                Some(inner)
            }
            '0'..='9' => {
                let number = self.take(|character| character.is_ascii_digit());
                Some(Box::new(Constant(number.parse().ok()?)))
            }
            'a'..='z' => self.name(),
            _ => None,
        }
    }

    /// Reads a variable or a call.
    fn name(&mut self) -> Parsed {
        let name = self.take(|character| character.is_ascii_lowercase());
        if let [letter @ b'a'..=b'd'] = name.as_bytes() {
            return Some(Box::new(Variable(usize::from(letter - b'a'))));
        }
        self.expect('(')?;
        let first = self.comparison()?;
        let made: Box<dyn Formula> = match name {
            "abs" => Box::new(Unary { apply: i64::wrapping_abs, operand: first }),
            "min" => binary(i64::min, first, self.argument()?),
            "max" => binary(i64::max, first, self.argument()?),
            "if" => Box::new(Choice { condition: first, then: self.argument()?, otherwise: self.argument()? }),
            _ => return None,
        };
        self.expect(')')?;
        Some(made)
    }

    /// Reads one of the arguments behind the first.
    fn argument(&mut self) -> Parsed {
        self.expect(',')?;
        self.comparison()
    }
}
