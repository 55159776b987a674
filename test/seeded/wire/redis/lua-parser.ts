/** An expression of Lua. */
export type Expression =
  | { readonly kind: 'constant'; readonly value: string | number | boolean | undefined }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'index'; readonly table: Expression; readonly key: Expression }
  | { readonly kind: 'call'; readonly callee: Expression; readonly args: readonly Expression[] }
  | { readonly kind: 'table'; readonly items: readonly Expression[] }
  | { readonly kind: 'unary'; readonly operator: string; readonly operand: Expression }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression }

/** A statement of Lua. */
export type Statement =
  | { readonly kind: 'local'; readonly names: readonly string[]; readonly values: readonly Expression[] }
  | { readonly kind: 'assign'; readonly targets: readonly Expression[]; readonly values: readonly Expression[] }
  | { readonly kind: 'call'; readonly call: Expression }
  | { readonly kind: 'function'; readonly name: string; readonly parameters: readonly string[]; readonly body: Block }
  | { readonly kind: 'if'; readonly branches: readonly { readonly test?: Expression; readonly body: Block }[] }
  | { readonly kind: 'while'; readonly test: Expression; readonly body: Block }
  | { readonly kind: 'repeat'; readonly body: Block; readonly test: Expression }
  | { readonly kind: 'for'; readonly name: string; readonly range: readonly Expression[]; readonly body: Block }
  | { readonly kind: 'each'; readonly names: readonly string[]; readonly list: Expression; readonly body: Block }
  | { readonly kind: 'return'; readonly values: readonly Expression[] }
  | { readonly kind: 'break' }

export type Block = readonly Statement[]

const TOKEN =
  /\s+|--[^\n]*|(?<number>0x[\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*)|(?<string>'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*")|(?<sign>\.\.|[=~<>]=|[-+*/%^#<>=(){}[\];,.:])/gy
const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
)
const UNARY_POWER = 8
const POWERS: Readonly<Record<string, readonly [left: number, right: number]>> = {
  or: [1, 1],
  and: [2, 2],
  '<': [3, 3],
  '>': [3, 3],
  '<=': [3, 3],
  '>=': [3, 3],
  '~=': [3, 3],
  '==': [3, 3],
  '..': [5, 4],
  '+': [6, 6],
  '-': [6, 6],
  '*': [7, 7],
  '/': [7, 7],
  '%': [7, 7],
  '^': [10, 9],
}

interface Token {
  readonly kind: 'number' | 'name' | 'string' | 'sign' | 'keyword' | 'end'
  readonly text: string
}

/** Parses what the scripts of this repository use of Lua 5.1: no methods, no nested functions without a name, no goto. */
export function parseLua(source: string): Block {
  return new Parser(tokensOf(source)).chunk()
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < source.length; ) {
    TOKEN.lastIndex = at
    const match = TOKEN.exec(source)
    if (match === null) throw new SyntaxError(`Lua: ${JSON.stringify(source.slice(at, at + 40))}`)
    at = TOKEN.lastIndex
    const { number, name, string, sign } = match.groups ?? {}
    if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (name !== undefined) tokens.push({ kind: KEYWORDS.has(name) ? 'keyword' : 'name', text: name })
    else if (string !== undefined) tokens.push({ kind: 'string', text: unescaped(string.slice(1, -1)) })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
  }
  tokens.push({ kind: 'end', text: '<end>' })
  return tokens
}

function unescaped(text: string): string {
  return text.replace(/\\(\d{1,3}|[\s\S])/g, (_, escaped: string) => {
    if (/^\d/.test(escaped)) return String.fromCharCode(Number(escaped))
    return { n: '\n', r: '\r', t: '\t' }[escaped] ?? escaped
  })
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  chunk(): Block {
    const block = this.#block()
    if (this.#next.kind !== 'end') throw this.#unexpected()
    return block
  }

  get #next(): Token {
    return this.#tokens[this.#at] as Token
  }

  #unexpected(): Error {
    const near = this.#tokens.slice(Math.max(0, this.#at - 5), this.#at + 3).map(({ text }) => text)
    return new SyntaxError(`Lua: unexpected ${this.#next.text} near: ${near.join(' ')}`)
  }

  /** Names, numbers and strings are never equal to a sign or keyword here. */
  #takes(text: string): boolean {
    const { kind, text: found } = this.#next
    if ((kind !== 'sign' && kind !== 'keyword') || found !== text) return false
    this.#at++
    return true
  }

  #expect(text: string): void {
    if (!this.#takes(text)) throw this.#unexpected()
  }

  #name(): string {
    const { kind, text } = this.#next
    if (kind !== 'name') throw this.#unexpected()
    this.#at++
    return text
  }

  #names(): string[] {
    const names = [this.#name()]
    while (this.#takes(',')) names.push(this.#name())
    return names
  }

  #block(): Block {
    const statements: Statement[] = []
    while (this.#next.kind !== 'end' && !/^(end|else|elseif|until)$/.test(this.#keyword())) {
      if (this.#takes(';')) continue
      statements.push(this.#statement())
    }
    return statements
  }

  #keyword(): string {
    return this.#next.kind === 'keyword' ? this.#next.text : ''
  }

  #statement(): Statement {
    if (this.#takes('local')) return this.#takes('function') ? this.#function() : this.#local()
    if (this.#takes('if')) return this.#if()
    if (this.#takes('for')) return this.#for()
    if (this.#takes('break')) return { kind: 'break' }
    if (this.#takes('while')) {
      const test = this.#expression()
      return { kind: 'while', test, body: this.#do() }
    }
    if (this.#takes('repeat')) {
      const body = this.#block()
      this.#expect('until')
      return { kind: 'repeat', body, test: this.#expression() }
    }
    if (this.#takes('return')) {
      const isBare = this.#next.kind === 'end' || /^(end|else|elseif|until)$/.test(this.#keyword())
      return { kind: 'return', values: isBare ? [] : this.#expressions() }
    }
    const first = this.#postfix()
    if (first.kind === 'call') return { kind: 'call', call: first }
    const targets: Expression[] = [first]
    while (this.#takes(',')) targets.push(this.#postfix())
    this.#expect('=')
    return { kind: 'assign', targets, values: this.#expressions() }
  }

  #do(): Block {
    this.#expect('do')
    const body = this.#block()
    this.#expect('end')
    return body
  }

  #local(): Statement {
    const names = this.#names()
    return { kind: 'local', names, values: this.#takes('=') ? this.#expressions() : [] }
  }

  #function(): Statement {
    const name = this.#name()
    this.#expect('(')
    const parameters = this.#takes(')') ? [] : this.#names()
    if (parameters.length > 0) this.#expect(')')
    const body = this.#block()
    this.#expect('end')
    return { kind: 'function', name, parameters, body }
  }

  #if(): Statement {
    const branches: { test?: Expression; body: Block }[] = []
    do {
      const test = this.#expression()
      this.#expect('then')
      branches.push({ test, body: this.#block() })
    } while (this.#takes('elseif'))
    if (this.#takes('else')) branches.push({ body: this.#block() })
    this.#expect('end')
    return { kind: 'if', branches }
  }

  #for(): Statement {
    const names = this.#names()
    if (this.#takes('in')) {
      const list = this.#expression()
      return { kind: 'each', names, list, body: this.#do() }
    }
    this.#expect('=')
    const range = this.#expressions()
    return { kind: 'for', name: names[0] ?? '', range, body: this.#do() }
  }

  #expressions(): Expression[] {
    const list = [this.#expression()]
    while (this.#takes(',')) list.push(this.#expression())
    return list
  }

  #expression(least = 0): Expression {
    let left = this.#operand()
    for (;;) {
      const { kind, text } = this.#next
      const powers = kind === 'sign' || kind === 'keyword' ? POWERS[text] : undefined
      if (powers === undefined || powers[0] <= least) return left
      this.#at++
      left = { kind: 'binary', operator: text, left, right: this.#expression(powers[1]) }
    }
  }

  #operand(): Expression {
    for (const operator of ['not', '-', '#'])
      if (this.#takes(operator)) return { kind: 'unary', operator, operand: this.#expression(UNARY_POWER) }
    const { kind, text } = this.#next
    if (kind === 'number' || kind === 'string') {
      this.#at++
      return { kind: 'constant', value: kind === 'number' ? Number(text) : text }
    }
    for (const [name, value] of [['nil', undefined] as const, ['true', true] as const, ['false', false] as const])
      if (this.#takes(name)) return { kind: 'constant', value }
    if (!this.#takes('{')) return this.#postfix()
    const items: Expression[] = []
    while (!this.#takes('}')) {
      items.push(this.#expression())
      if (!this.#takes(',')) {
        this.#expect('}')
        break
      }
    }
    return { kind: 'table', items }
  }

  #postfix(): Expression {
    let value: Expression
    if (this.#takes('(')) {
      value = this.#expression()
      this.#expect(')')
    } else value = { kind: 'name', name: this.#name() }
    for (;;) {
      if (this.#takes('.')) value = { kind: 'index', table: value, key: { kind: 'constant', value: this.#name() } }
      else if (this.#takes('[')) {
        value = { kind: 'index', table: value, key: this.#expression() }
        this.#expect(']')
      } else if (this.#takes('(')) {
        const args = this.#takes(')') ? [] : this.#expressions()
        if (args.length > 0) this.#expect(')')
        value = { kind: 'call', callee: value, args }
      } else return value
    }
  }
}
