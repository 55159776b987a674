import type { DisconnectNotice, HookClient, Hooks, ListenRequest } from '../../doors/options/hooks.js'
import type { Deadlines } from '../../kernel/base/deadlines.js'
import type { Logger } from '../../kernel/base/logger.js'
import { andThen, isPromise, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import { type Actor, type ConnectFacts, isTrusted } from '../../kernel/identity/actor.js'
import {
  HOOK_NAMES,
  type HookCounts,
  type HookName,
  type HookOutcome,
  type HookPort,
  NO_HOOK_COUNTS,
  type PublishChange,
} from '../../kernel/identity/hook-port.js'
import type { Identity } from '../../kernel/identity/index.js'
import type { Broker, InboundMessage } from '../../kernel/ports/broker.js'
import type { WordLimits } from '../../kernel/ports/word-limits.js'
import { readAnswer } from './answers.js'
import { Chain, type ChainContext, type Link } from './chain.js'
import { DeliveringBroker } from './delivering-broker.js'
import { Asked, AskedConnect, AskedDeliver, AskedPresence, AskedPublish } from './message-requests.js'

/** Hooks of one place: those of the process, or a webhook. */
export interface HookSource {
  /** For the log. */
  readonly name: string
  readonly hooks: Hooks
  /** Time for a promise of one of them. */
  readonly timeoutMs: number
  /** What a question costs the server, in units of the client's work; absent: its functions are the application's own. */
  readonly unitsPerQuestion?: number
}

export interface HookCallsContext {
  /** In the order in which they are asked. */
  readonly sources: readonly HookSource[]
  readonly limits: WordLimits
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  readonly logger: Pick<Logger, 'error'>
  /** Unix time in milliseconds, for the end of an identity. */
  readonly now: () => number
}

/**
 * Asks the hooks of all sources about clients, and never about the application itself. A hook that no source has is
 * `undefined` here, so that asking nobody costs one check.
 */
export class HookCalls implements HookPort {
  readonly #context: HookCallsContext
  readonly #chains

  constructor(context: HookCallsContext) {
    this.#context = context
    const describe = ({ session, user }: HookClient) => ({ session, user })
    this.#chains = {
      connect: this.#chain('connect', { take: AskedConnect.take, describe }),
      listen: this.#chain<ListenRequest>('listen', {
        take: (_request, answer) => void readAnswer(answer, []),
        describe,
      }),
      publish: this.#chain('publish', { take: AskedPublish.take, keep: AskedPublish.keep, describe }),
      deliver: this.#chain('deliver', {
        take: AskedDeliver.take,
        isImmediate: true,
        describe: ({ key }: AskedDeliver) => ({ key }),
      }),
      presence: this.#chain('presence', { take: AskedPresence.take, describe }),
      disconnect: this.#chain<DisconnectNotice>('disconnect', { take: () => undefined, describe }),
    } satisfies { readonly [Name in HookName]: unknown }
  }

  has(...names: readonly HookName[]): boolean {
    return names.some((name) => this.#chains[name] !== undefined)
  }

  get counts(): HookCounts {
    const counts: { [Name in HookName]: Readonly<Record<HookOutcome, number>> } = { ...NO_HOOK_COUNTS }
    for (const name of HOOK_NAMES) counts[name] = this.#chains[name]?.counts ?? counts[name]
    return counts
  }

  measure(onTime: (name: HookName, durationMs: number) => void): void {
    for (const chain of Object.values(this.#chains)) if (chain !== undefined) chain.onTime = onTime
  }

  connect(caller: Actor, identity: Identity, facts: ConnectFacts | undefined): MaybePromise<Identity> {
    if (this.#chains.connect === undefined) return identity
    this.#charge(caller, 'connect')
    const { limits, now } = this.#context
    const request = new AskedConnect(caller, identity, facts, limits, now())
    return andThen(this.#chains.connect.ask(request), () => AskedConnect.identityOf(request))
  }

  listen(caller: Actor, op: 'listen' | 'history', pattern: string, isReplay: boolean): MaybePromise<void> {
    if (this.#chains.listen === undefined || isTrusted(caller)) return
    this.#charge(caller, 'listen')
    return this.#chains.listen.ask(Object.assign(new Asked(caller), { op, pattern, isReplay }))
  }

  publish(
    caller: Actor,
    key: string,
    payload: Uint8Array,
    isBinary: boolean,
    isEphemeral: boolean,
  ): MaybePromise<PublishChange | undefined> {
    if (this.#chains.publish === undefined) return undefined
    this.#charge(caller, 'publish')
    const request = new AskedPublish(caller, key, payload, isBinary, isEphemeral)
    const asked = this.#chains.publish.ask(request)
    return isPromise(asked) ? asked.then(() => AskedPublish.changeOf(request)) : AskedPublish.changeOf(request)
  }

  presence(
    caller: Actor,
    op: 'enter' | 'get' | 'watch',
    key: string,
    data: string | undefined,
  ): MaybePromise<string | undefined> {
    if (this.#chains.presence === undefined || isTrusted(caller)) return undefined
    this.#charge(caller, 'presence')
    const request = new AskedPresence(caller, op, key, data)
    return andThen(this.#chains.presence.ask(request), () => AskedPresence.changeOf(request))
  }

  deliver(message: InboundMessage): InboundMessage | undefined {
    if (this.#chains.deliver === undefined) return message
    const request = new AskedDeliver(message)
    // Immediate: it throws instead of returning a promise.
    void this.#chains.deliver.ask(request)
    return AskedDeliver.outcomeOf(request)
  }

  delivering(broker: Broker, hasListeners: (key: string) => boolean): Broker {
    return new DeliveringBroker(broker, this, hasListeners)
  }

  disconnect(caller: Actor, code: number, reason: string, durationMs: number): void {
    try {
      const told = this.#chains.disconnect?.ask(Object.assign(new Asked(caller), { code, reason, durationMs }))
      // Its failure is logged.
      if (isPromise(told)) told.catch(() => undefined)
    } catch {
      // Logged by the chain.
    }
  }

  #charge(caller: Actor, name: HookName): void {
    for (const { hooks, unitsPerQuestion } of this.#context.sources)
      if (unitsPerQuestion !== undefined && hooks[name] !== undefined) caller.charge?.(unitsPerQuestion)
  }

  #chain<Request extends object>(
    name: HookName,
    reading: Pick<ChainContext<Request>, 'take' | 'keep' | 'describe' | 'isImmediate'>,
  ): Chain<Request> | undefined {
    const links: Link<Request>[] = []
    for (const { name: source, hooks, timeoutMs } of this.#context.sources) {
      const call = hooks[name] as ((request: Request) => unknown) | undefined
      if (call !== undefined) links.push({ source, timeoutMs, call: call.bind(hooks) })
    }
    if (links.length === 0) return undefined
    const { deadlines, logger } = this.#context
    return new Chain({ ...reading, name, links, deadlines, logger })
  }
}
