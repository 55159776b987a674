import type { WireBroker, WireLink, WireSession } from '../broker.js'
import { KEY_COMMANDS, NEEDS_MEMORY } from './commands.js'
import { Keyspace } from './keyspace.js'
import { encodeReply, OK, Pairs, type Protocol, Push, type Reply, ReplyError, RequestReader, Status } from './resp.js'
import { Scripts } from './scripts.js'

const RUN_ID_LENGTH = 40
/** What a subscribed connection may send in RESP2. */
const OF_SUBSCRIBERS = /^(P?SUBSCRIBE|P?UNSUBSCRIBE|PING|QUIT|RESET)$/

export interface ModelRedisOptions {
  readonly port?: number
  readonly random: () => number
}

/**
 * A Redis of one server: RESP2 and RESP3, the keys and commands that the driver and its scripts use, publish and subscribe. It runs
 * the scripts of the driver themselves. Without cluster, sentinel, access lists and transactions.
 */
export class ModelRedis implements WireBroker {
  readonly port: number
  readonly sessions = new Set<RedisSession>()
  readonly keys = new Keyspace()
  readonly scripts = new Scripts((args) => this.call(args, undefined))
  readonly settings = new Map([
    ['appendonly', 'yes'],
    ['appendfsync', 'everysec'],
    ['maxmemory', '0'],
  ])
  readonly #random: () => number
  #runId = ''
  #isUp = false
  #sessionCount = 0

  constructor({ port = 6379, random }: ModelRedisOptions) {
    this.port = port
    this.#random = random
    this.start()
  }

  connect(link: WireLink): WireSession {
    const session = new RedisSession(this, link, ++this.#sessionCount)
    if (this.#isUp) this.sessions.add(session)
    else link.end('reset')
    return session
  }

  kill(lostCount: number): void {
    this.#isUp = false
    this.keys.lose(lostCount)
    this.scripts.forget()
    const sessions = [...this.sessions]
    this.sessions.clear()
    for (const session of sessions) session.end('reset')
  }

  start(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#runId = Array.from({ length: RUN_ID_LENGTH }, () => Math.floor(this.#random() * 16).toString(16)).join('')
  }

  publish(channel: string, payload: string): number {
    let count = 0
    const direct = new Push('message', channel, payload)
    for (const session of this.sessions) {
      if (!session.channels.has(channel)) continue
      session.send(direct)
      count++
    }
    for (const session of this.sessions)
      for (const [glob, regexp] of session.globs) {
        if (!regexp.test(channel)) continue
        session.send(new Push('pmessage', glob, channel, payload))
        count++
      }
    return count
  }

  /** Executes a command. @throws {ReplyError} */
  call([name = '', ...args]: readonly string[], session: RedisSession | undefined): Reply {
    const command = name.toUpperCase()
    const onKey = KEY_COMMANDS[command]
    if (onKey !== undefined) {
      const [key, ...rest] = args
      if (key === undefined) throw new ReplyError(`ERR wrong number of arguments for '${name}' command`)
      if (NEEDS_MEMORY.has(command) && this.settings.get('maxmemory') !== '0')
        throw new ReplyError("OOM command not allowed when used memory > 'maxmemory'.")
      return onKey(this.keys, key, rest)
    }
    switch (command) {
      case 'PUBLISH':
        return this.publish(args[0] ?? '', args[1] ?? '')
      case 'TIME': {
        const nowMs = Date.now()
        return [String(Math.floor(nowMs / 1000)), String((nowMs % 1000) * 1000)]
      }
      case 'INFO':
        return this.#info()
      case 'PING':
        return new Status('PONG')
    }
    if (session === undefined) throw new ReplyError(`ERR unknown command '${name}' in a script`)
    return this.#callOfSession(command, args, session)
  }

  #callOfSession(command: string, args: readonly string[], session: RedisSession): Reply {
    const [first = '', ...rest] = args
    switch (command) {
      case 'EVALSHA':
        return this.scripts.run(first, rest)
      case 'EVAL':
        return this.scripts.run(this.scripts.load(first), rest)
      case 'SCRIPT':
        if (first.toUpperCase() === 'LOAD') return this.scripts.load(rest[0] ?? '')
        this.scripts.forget()
        return OK
      case 'HELLO':
        return this.#hello(first, session)
      case 'CONFIG': {
        const [name = '', value = ''] = rest
        if (first.toUpperCase() === 'GET') return new Pairs(name, this.settings.get(name) ?? '')
        this.settings.set(name, value)
        return OK
      }
      case 'CLIENT':
        return this.#client(first.toUpperCase(), rest, session)
      case 'PUBSUB': {
        const glob = regexpOf(rest[0] ?? '*')
        const channels = [...this.sessions].flatMap((each) => [...each.channels])
        return [...new Set(channels)].filter((channel) => glob.test(channel))
      }
      case 'SELECT':
      case 'AUTH':
        return OK
    }
    throw new ReplyError(`ERR unknown command '${command}', with args beginning with: `)
  }

  #hello(version: string, session: RedisSession): Reply {
    if (!/^[23]?$/.test(version)) throw new ReplyError('NOPROTO unsupported protocol version')
    if (version !== '') session.protocol = version === '3' ? 3 : 2
    const own = ['proto', session.protocol, 'id', session.id] as const
    return new Pairs('server', 'redis', 'version', '7.0.0', ...own, 'mode', 'standalone', 'role', 'master')
  }

  #client(what: string, args: readonly string[], session: RedisSession): Reply {
    if (what === 'SETNAME') session.name = args[0] ?? ''
    if (what === 'SETNAME' || what === 'SETINFO') return OK
    if (what === 'LIST') {
      const isOfSubscribers = args[1]?.toLowerCase() === 'pubsub'
      const listed = [...this.sessions].filter((each) => !isOfSubscribers || each.isSubscribed)
      return listed.map((each) => `${each.description}\n`).join('')
    }
    if (what === 'KILL' && args[0]?.toUpperCase() === 'ID') {
      const killed = [...this.sessions].filter((each) => String(each.id) === args[1])
      for (const each of killed) each.end('end')
      return killed.length
    }
    throw new ReplyError(`ERR unknown subcommand '${what}'`)
  }

  #info(): string {
    const aof = Number(this.settings.get('appendonly') === 'yes')
    const lines = ['# Server', 'redis_version:7.0.0', `run_id:${this.#runId}`, '# Persistence', 'loading:0']
    const more = [`aof_enabled:${aof}`, '# Replication', 'role:master', `master_replid2:${'0'.repeat(RUN_ID_LENGTH)}`]
    return `${[...lines, ...more].join('\r\n')}\r\n`
  }
}

const GLOBS = new Map<string, RegExp>()

/** A glob of Redis: `*`, `?`, `[…]`, and any of them behind a backslash. */
function regexpOf(glob: string): RegExp {
  const known = GLOBS.get(glob)
  if (known !== undefined) return known
  const source = glob.replace(/\\([\s\S])|\*+|\?|\[(\^?)((?:\\[\s\S]|[^\]])*)\]|[\s\S]/g, (part, escaped, not, set) => {
    if (escaped !== undefined) return quoted(escaped)
    if (part.startsWith('*')) return '[\\s\\S]*'
    if (part === '?') return '[\\s\\S]'
    return set === undefined ? quoted(part) : `[${not}${set.replace(/[\][]/g, '\\$&')}]`
  })
  const regexp = new RegExp(`^${source}$`)
  GLOBS.set(glob, regexp)
  return regexp
}

function quoted(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** A connection to a {@link ModelRedis}. */
export class RedisSession implements WireSession {
  readonly id: number
  name = ''
  readonly channels = new Set<string>()
  readonly globs = new Map<string, RegExp>()
  protocol: Protocol = 2
  readonly #redis: ModelRedis
  readonly #link: WireLink
  readonly #reader = new RequestReader()
  #isOver = false
  /** Answers of one read, which leave together. */
  #answers = ''
  #isReading = false

  constructor(redis: ModelRedis, link: WireLink, id: number) {
    this.#redis = redis
    this.#link = link
    this.id = id
  }

  get isSubscribed(): boolean {
    return this.channels.size + this.globs.size > 0
  }

  get description(): string {
    return `id=${this.id} addr=model name=${this.name} db=0 sub=${this.channels.size} psub=${this.globs.size} flags=N`
  }

  receive(bytes: Uint8Array): void {
    if (this.#isOver) return
    this.#isReading = true
    try {
      for (const request of this.#reader.read(bytes)) if (!this.#isOver) this.#answer(request)
    } catch (cause) {
      if (!(cause instanceof ReplyError)) throw cause
      this.send(cause)
      this.end('end')
    }
    this.#isReading = false
    const answers = this.#answers
    this.#answers = ''
    if (answers !== '' && !this.#isOver) this.#link.send(Buffer.from(answers, 'latin1'))
  }

  closed(): void {
    this.#isOver = true
    this.#redis.sessions.delete(this)
  }

  send(reply: Reply): void {
    const text = encodeReply(reply, this.protocol)
    if (this.#isReading) this.#answers += text
    else if (!this.#isOver) this.#link.send(Buffer.from(text, 'latin1'))
  }

  end(how: 'end' | 'reset'): void {
    if (this.#isOver) return
    if (this.#answers !== '' && how === 'end') this.#link.send(Buffer.from(this.#answers, 'latin1'))
    this.closed()
    this.#link.end(how)
  }

  #answer(request: readonly string[]): void {
    const [name = '', ...names] = request
    const command = name.toUpperCase()
    this.#redis.keys.begin()
    if (command.endsWith('SUBSCRIBE')) this.#subscribe(command, names)
    else if (command === 'QUIT') {
      this.send(OK)
      this.end('end')
    } else this.send(this.#replyTo(command, request))
  }

  #replyTo(command: string, request: readonly string[]): Reply {
    if (this.protocol === 2 && this.isSubscribed) {
      if (command === 'PING') return ['pong', '']
      if (!OF_SUBSCRIBERS.test(command))
        return new ReplyError(`ERR Can't execute '${command.toLowerCase()}': only (P)SUBSCRIBE / QUIT are allowed`)
    }
    try {
      return this.#redis.call(request, this)
    } catch (cause) {
      if (cause instanceof ReplyError) return cause
      throw cause
    }
  }

  #subscribe(command: string, names: readonly string[]): void {
    const kind = command.toLowerCase()
    const isGlob = kind.startsWith('p')
    const isEnd = kind.includes('un')
    const all = isGlob ? [...this.globs.keys()] : [...this.channels]
    for (const name of isEnd && names.length === 0 ? all : names) {
      if (isGlob && isEnd) this.globs.delete(name)
      else if (isGlob) this.globs.set(name, regexpOf(name))
      else if (isEnd) this.channels.delete(name)
      else this.channels.add(name)
      this.send(new Push(kind, name, this.channels.size + this.globs.size))
    }
  }
}
