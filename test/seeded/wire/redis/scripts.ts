import { compileLua, type LuaScript } from './lua-compiler.js'
import { LIBRARY, LuaTable, sha1Of } from './lua-values.js'
import { Pairs, Push, type Reply, ReplyError, Status } from './resp.js'

/** Compiled, by their SHA-1: for all models of this process. */
const COMPILED = new Map<string, LuaScript>()

/** The scripts of one Redis, which forgets them when it ends. */
export class Scripts {
  readonly #known = new Set<string>()
  readonly #call: (args: readonly string[]) => Reply

  /** @param call Executes a command; throws its error. */
  constructor(call: (args: readonly string[]) => Reply) {
    this.#call = call
  }

  load(source: string): string {
    const sha = sha1Of(source)
    if (!COMPILED.has(sha)) {
      try {
        COMPILED.set(sha, compileLua(source))
      } catch (cause) {
        throw new ReplyError(`ERR Error compiling script: ${String(cause)}`)
      }
    }
    this.#known.add(sha)
    return sha
  }

  forget(): void {
    this.#known.clear()
  }

  run(sha: string, [count = '', ...rest]: readonly string[]): Reply {
    const script = this.#known.has(sha) ? COMPILED.get(sha) : undefined
    if (script === undefined) throw new ReplyError('NOSCRIPT No matching script. Please use EVAL.')
    const keyCount = Number(count)
    const redis = {
      call: (...args: unknown[]) => toLua(this.#call(args.map(String))),
      error_reply: (text: string) => errorTable(text),
      sha1hex: sha1Of,
    }
    const [KEYS, ARGV] = [new LuaTable(rest.slice(0, keyCount)), new LuaTable(rest.slice(keyCount))]
    try {
      return toReply(script({ ...LIBRARY, redis, KEYS, ARGV }))
    } catch (cause) {
      if (cause instanceof ReplyError) throw cause
      throw new ReplyError(`ERR user_script: ${String(cause)}`)
    }
  }
}

function errorTable(text: string): LuaTable {
  const table = new LuaTable()
  table.fields.set('err', text)
  return table
}

function toLua(reply: Reply): unknown {
  if (reply === null) return false
  if (reply instanceof ReplyError) throw reply
  if (reply instanceof Status) {
    const table = new LuaTable()
    table.fields.set('ok', reply.text)
    return table
  }
  if (reply instanceof Pairs || reply instanceof Push) return toLua(reply.items)
  return typeof reply === 'object' ? new LuaTable(reply.map(toLua)) : reply
}

function toReply(value: unknown): Reply {
  if (value === undefined || value === false) return null
  if (value === true) return 1
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value === 'string') return value
  if (!(value instanceof LuaTable)) throw new ReplyError('ERR a script returned what is no value of Lua')
  const [error, status] = [value.fields.get('err'), value.fields.get('ok')]
  if (typeof error === 'string') return new ReplyError(error)
  if (typeof status === 'string') return new Status(status)
  const end = value.list.indexOf(undefined)
  return (end < 0 ? value.list : value.list.slice(0, end)).map(toReply)
}
