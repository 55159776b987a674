import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Adapter, CommandError } from './adapter.js'
import type { CallStep, Case, NextStep, PlayStep, PublishStep, StateStep, Step, StreamStep, WaitStep } from './case.js'
import { CaseServer, type StartServer, tokenNamed } from './case-server.js'
import { PlayedServer } from './played-server.js'

/** Messages that are skipped, changes of a state, or parts of a stream, until it has come to what the case asks for. */
const MAX_CHANGES = 10_000

type Members = Readonly<Record<string, unknown>>

/**
 * Plays one case against a client.
 * @param startServer Default: a server of `webmq-server`.
 * @throws {Error} It did something else than the case says; the message names the step.
 */
export async function runCase(
  { steps, server: setup = {} }: Case,
  adapter: Adapter,
  startServer?: StartServer,
): Promise<void> {
  const server = await (setup.played ? PlayedServer.start(setup.played) : CaseServer.start(setup, startServer))
  const run = new Run(server, adapter)
  try {
    for (const [index, step] of steps.entries()) {
      try {
        await run.take(step)
      } catch (error) {
        const { message } = error as Error
        throw new Error(`step ${index + 1}, ${JSON.stringify(step)}: ${message}`, { cause: error })
      }
    }
  } finally {
    await run.end()
    await server.stop()
  }
}

class Run {
  readonly #server: CaseServer | PlayedServer
  readonly #adapter: Adapter
  readonly #kept = new Map<string, Members>()
  readonly #started = new Map<string, Promise<Members | CommandError>>()
  readonly #content = new Map<string, string>()

  constructor(server: CaseServer | PlayedServer, adapter: Adapter) {
    this.#server = server
    this.#adapter = adapter
  }

  async take(step: Step): Promise<void> {
    if ('do' in step) await this.#do(step)
    else if ('next' in step) await this.#next(step)
    else if ('state' in step) await this.#state(step)
    else if ('stream' in step) await this.#stream(step)
    else if ('publish' in step) await this.#publish(step)
    else if ('fault' in step) await this.#server.fault(step)
    else if ('play' in step) this.#play(step)
    else await this.#wait(step)
  }

  get #played(): PlayedServer | undefined {
    return this.#server instanceof PlayedServer ? this.#server : undefined
  }

  get #real(): CaseServer {
    if (this.#server instanceof PlayedServer) throw new Error('the server of this case is played')
    return this.#server
  }

  #play({ play, text = '', times = 1, welcome = '', verb = '', atMost = 0 }: PlayStep): void {
    const server = this.#played
    if (server === undefined) throw new Error('the server of this case is not played')
    if (play === 'welcome') server.welcome(welcome)
    else if (play === 'say') for (let count = 0; count < times; count++) server.say(text)
    else {
      const count = server.heardCount(verb)
      if (count > atMost) throw new Error(`the server has heard ${verb} ${count} times`)
    }
  }

  /** The clients of a case end with it. */
  async end(): Promise<void> {
    await this.#adapter.call({ do: 'reset' })
  }

  async #do({ error, gives = {}, as, start, ...command }: CallStep): Promise<void> {
    if (command.do === 'await') {
      const started = this.#started.get(String(command.started))
      if (command.pending === true) {
        const early = await Promise.race([started, sleep(0)])
        if (early !== undefined) throw new Error(`there is an answer: ${JSON.stringify(early)}`)
        return
      }
      const outcome = await started
      if (outcome === undefined) throw new Error('nothing of this name was started')
      this.#judge(outcome, error, gives, as)
      return
    }
    const called = this.#adapter.call(this.#resolved({ ...command, ...this.#connecting(command) })).catch((thrown) => {
      if (thrown instanceof CommandError) return thrown
      throw thrown
    })
    if (start === undefined) this.#judge(await called, error, gives, as)
    else {
      // An adapter that dies tells so by the next command.
      called.catch(() => undefined)
      this.#started.set(start, called)
    }
  }

  #connecting({ do: name, tokens }: Members): Members {
    if (name !== 'connect') return {}
    const named = Array.isArray(tokens) ? tokens.map((token) => tokenNamed(String(token))) : undefined
    return { url: this.#server.url, ...(named && { tokens: named }) }
  }

  #judge(outcome: Members | CommandError, code: CallStep['error'], gives: Members, as: string | undefined): void {
    if (outcome instanceof CommandError) {
      if (![code].flat().includes(outcome.code)) throw outcome
      return
    }
    if (code !== undefined) throw new Error(`it succeeded: ${JSON.stringify(outcome)}`)
    assertHas(outcome, this.#resolved(gives))
    if (as !== undefined) this.#kept.set(as, outcome)
  }

  async #next({ next, is, times = 1, skips = false, as }: NextStep): Promise<void> {
    for (let number = 0; number < times; number++) {
      let got = await this.#adapter.call({ do: 'next', listener: next })
      for (let count = 0; skips && count < MAX_CHANGES && ('payload' in got || 'gap' in got); count++) {
        if (isDeepStrictEqual(got.payload, is.payload)) break
        got = await this.#adapter.call({ do: 'next', listener: next })
      }
      assertHas(got, numbered(this.#resolved(is), number) as Members)
      if (as !== undefined) this.#kept.set(as, got)
    }
  }

  async #state({ state, becomes }: StateStep): Promise<void> {
    let values: unknown
    for (let count = 0; count < MAX_CHANGES; count++) {
      values = (await this.#adapter.call({ do: 'next', listener: state })).values
      if (isDeepStrictEqual(values, becomes)) return
    }
    throw new Error(`it became ${JSON.stringify(values)}`)
  }

  async #stream({ stream, content, status = 'active', result }: StreamStep): Promise<void> {
    let now = { status: 'active', result: undefined as unknown }
    for (let count = 0; count < MAX_CHANGES; count++) {
      const whole = this.#content.get(stream) ?? ''
      if (whole === content && now.status === status && isDeepStrictEqual(now.result, result)) return
      const part = await this.#adapter.call({ do: 'streamNext', reader: stream })
      if (typeof part.status === 'string') now = { status: part.status, result: part.result ?? undefined }
      else this.#content.set(stream, `${part.isWhole === true ? '' : whole}${String(part.content)}`)
    }
    throw new Error(`it came to ${JSON.stringify(this.#content.get(stream))}`)
  }

  async #publish({ publish, payload, times = 1, ephemeral = false }: PublishStep): Promise<void> {
    for (let number = 0; number < times; number++) {
      await this.#real.server.publish(publish, bytesOf(numbered(payload, number)), { ephemeral })
    }
  }

  async #wait({ wait, client }: WaitStep): Promise<void> {
    if (typeof wait === 'number') await sleep(wait)
    else await this.#adapter.call({ do: 'waitStatus', client, status: wait })
  }

  /** Replaces what was kept. */
  #resolved<T extends Members>(members: T): T {
    const resolve = (value: unknown): unknown => {
      if (typeof value !== 'string' || !value.startsWith('$')) return value
      const [name = '', member = ''] = value.slice(1).split('.')
      return this.#kept.get(name)?.[member]
    }
    return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, resolve(value)])) as T
  }
}

/** Binary payloads are `{ "base64": … }` in a case. */
function bytesOf(payload: unknown): unknown {
  const { base64 } = Object(payload) as { base64?: unknown }
  return typeof base64 === 'string' ? Buffer.from(base64, 'base64') : payload
}

/** `@` in a text, and `"@"` as a value, stand for the number. */
function numbered(value: unknown, number: number): unknown {
  if (value === '@') return number
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => numbered(item, number))
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, numbered(item, number)]))
}

function assertHas(got: Members, expected: Members): void {
  for (const [name, value] of Object.entries(expected)) {
    if (!isDeepStrictEqual(got[name] ?? null, value ?? null)) {
      throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(got).slice(0, 500)}`)
    }
  }
}
