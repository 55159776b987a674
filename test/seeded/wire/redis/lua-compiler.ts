import { type Block, type Expression, parseLua, type Statement } from './lua-parser.js'
import { LuaTable, OPERATORS } from './lua-values.js'

/** Runs a script with its globals. Returns the first value that it returns. */
export type LuaScript = (globals: Readonly<Record<string, unknown>>) => unknown

const BINARY: Readonly<Record<string, string>> = {
  '+': 'add',
  '-': 'subtract',
  '*': 'multiply',
  '/': 'divide',
  '%': 'modulo',
  '^': 'power',
  '..': 'join',
  '<': 'isLess',
  '<=': 'isAtMost',
}

/**
 * Compiles a script of Lua to JavaScript. Strings are of bytes: one character each, below 256. A function returns one
 * value, or many as an array.
 */
export function compileLua(source: string): LuaScript {
  const emitter = new Emitter()
  const body = emitter.block(parseLua(source), new Map())
  const compiled = new Function('G', 'O', 'Table', `"use strict";\n${emitter.temporaries}${body}`) as (
    globals: Readonly<Record<string, unknown>>,
    operators: typeof OPERATORS,
    table: typeof LuaTable,
  ) => unknown
  return (globals) => OPERATORS.first(compiled(globals, OPERATORS, LuaTable))
}

/** The names of locals in JavaScript. */
type Scope = Map<string, string>

class Emitter {
  #count = 0

  /** For values that `and` and `or` look at twice. Scripts do not call themselves, and a value is read at once. */
  get temporaries(): string {
    return this.#count === 0 ? '' : `let ${Array.from({ length: this.#count }, (_, at) => `t${at}`).join(', ')};\n`
  }

  block(statements: Block, outer: Scope): string {
    const scope = new Map(outer)
    return statements.map((each) => this.#statement(each, scope)).join('\n')
  }

  #declare(name: string, scope: Scope): string {
    const own = `${name}_${this.#count++}`
    scope.set(name, own)
    return own
  }

  #statement(statement: Statement, scope: Scope): string {
    switch (statement.kind) {
      case 'local': {
        const values = this.#list(statement.values, scope)
        const names = statement.names.map((name) => this.#declare(name, scope))
        const [only] = statement.values
        if (names.length === 1 && statement.values.length === 1 && only !== undefined)
          return `let ${names[0]} = ${values.single};`
        return `let [${names.join(', ')}] = ${values.many};`
      }
      case 'assign': {
        const values = this.#list(statement.values, scope)
        const [only] = statement.targets
        if (statement.targets.length === 1 && only !== undefined) return this.#assigned(only, values.single, scope)
        const held = `h_${this.#count++}`
        const each = statement.targets.map((target, at) => this.#assigned(target, `${held}[${at}]`, scope))
        return `const ${held} = ${values.many};\n${each.join('\n')}`
      }
      case 'call':
        return `${this.#call(statement.call, scope)};`
      case 'function': {
        const name = this.#declare(statement.name, scope)
        const inner = new Map(scope)
        const parameters = statement.parameters.map((each) => this.#declare(each, inner))
        return `const ${name} = (${parameters.join(', ')}) => {\n${this.block(statement.body, inner)}\n};`
      }
      case 'if':
        return statement.branches
          .map(({ test, body }) => {
            const head = test === undefined ? '' : `if (O.isTrue(${this.#value(test, scope)})) `
            return `${head}{\n${this.block(body, scope)}\n}`
          })
          .join(' else ')
      case 'while':
        return `while (O.isTrue(${this.#value(statement.test, scope)})) {\n${this.block(statement.body, scope)}\n}`
      case 'repeat': {
        // The test sees the locals of the body.
        const inner = new Map(scope)
        const body = statement.body.map((each) => this.#statement(each, inner)).join('\n')
        return `for (;;) {\n${body}\nif (O.isTrue(${this.#value(statement.test, inner)})) break;\n}`
      }
      case 'for': {
        const [from, to, step] = statement.range.map((each) => this.#value(each, scope))
        const inner = new Map(scope)
        const name = this.#declare(statement.name, inner)
        const body = this.block(statement.body, inner)
        return `for (const ${name} of O.range(${from}, ${to}, ${step ?? 1})) {\n${body}\n}`
      }
      case 'each': {
        const { list } = statement
        const argument = list.kind === 'call' ? list.args[0] : undefined
        if (list.kind !== 'call' || argument === undefined) throw new SyntaxError('Lua: for … in without ipairs')
        const values = this.#value(argument, scope)
        const inner = new Map(scope)
        const names = statement.names.map((name) => this.#declare(name, inner))
        return `for (const [${names.join(', ')}] of O.eachOf(${values})) {\n${this.block(statement.body, inner)}\n}`
      }
      case 'return':
        return `return ${statement.values.length === 1 ? this.#raw(statement.values[0] as Expression, scope) : this.#list(statement.values, scope).many};`
      case 'break':
        return 'break;'
    }
  }

  #assigned(target: Expression, value: string, scope: Scope): string {
    if (target.kind === 'index')
      return `O.set(${this.#value(target.table, scope)}, ${this.#value(target.key, scope)}, ${value});`
    const name = target.kind === 'name' ? scope.get(target.name) : undefined
    if (name === undefined) throw new SyntaxError('Lua: Redis lets scripts make no globals')
    return `${name} = ${value};`
  }

  /** As one value, and as an array with all values of the last. */
  #list(values: readonly Expression[], scope: Scope): { single: string; many: string } {
    const last = values.at(-1)
    const heads = values.slice(0, -1).map((each) => this.#value(each, scope))
    if (last === undefined) return { single: 'undefined', many: '[]' }
    const raw = this.#raw(last, scope)
    const tail = last.kind === 'call' ? `...O.all(${raw})` : raw
    const single = last.kind === 'call' ? `O.first(${raw})` : raw
    return { single: heads[0] ?? single, many: `[${[...heads, tail].join(', ')}]` }
  }

  #value(expression: Expression, scope: Scope): string {
    const raw = this.#raw(expression, scope)
    return expression.kind === 'call' ? `O.first(${raw})` : raw
  }

  #call(expression: Expression, scope: Scope): string {
    if (expression.kind !== 'call') throw new SyntaxError('Lua: not a call')
    return `${this.#value(expression.callee, scope)}(...${this.#list(expression.args, scope).many})`
  }

  /** A call may give an array of values. */
  #raw(expression: Expression, scope: Scope): string {
    switch (expression.kind) {
      case 'constant':
        return expression.value === undefined ? 'undefined' : JSON.stringify(expression.value)
      case 'name':
        return scope.get(expression.name) ?? `G[${JSON.stringify(expression.name)}]`
      case 'index':
        return `O.get(${this.#value(expression.table, scope)}, ${this.#value(expression.key, scope)})`
      case 'call':
        return this.#call(expression, scope)
      case 'table':
        return `new Table(${this.#list(expression.items, scope).many})`
      case 'unary': {
        const operand = this.#value(expression.operand, scope)
        if (expression.operator === 'not') return `!O.isTrue(${operand})`
        return expression.operator === '-' ? `O.subtract(0, ${operand})` : `O.lengthOf(${operand})`
      }
      case 'binary': {
        const { operator } = expression
        const [left, right] = [this.#value(expression.left, scope), this.#value(expression.right, scope)]
        if (operator === 'and' || operator === 'or') {
          const held = `t${this.#count++}`
          return operator === 'and'
            ? `(O.isTrue(${held} = ${left}) ? ${right} : ${held})`
            : `(O.isTrue(${held} = ${left}) ? ${held} : ${right})`
        }
        if (operator === '==') return `(${left} === ${right})`
        if (operator === '~=') return `(${left} !== ${right})`
        if (operator === '>') return `O.isLess(${right}, ${left})`
        if (operator === '>=') return `O.isAtMost(${right}, ${left})`
        const name = BINARY[operator]
        if (name === undefined) throw new SyntaxError(`Lua: ${operator}`)
        return `O.${name}(${left}, ${right})`
      }
    }
  }
}
