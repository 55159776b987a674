import type { Queue } from './queue.js'
import { Refusal } from './refusal.js'

export type ExchangeType = 'topic' | 'direct' | 'fanout'

interface Binding {
  readonly key: string
  readonly queue: Queue
}

/** Routes by its bindings. What it routes to is remembered until they change. */
export class Exchange {
  readonly name: string
  readonly type: ExchangeType
  readonly isDurable: boolean
  #bindings: Binding[] = []
  readonly #routes = new Map<string, readonly Queue[]>()

  constructor(name: string, type: ExchangeType, isDurable: boolean) {
    this.name = name
    this.type = type
    this.isDurable = isDurable
  }

  get bindings(): readonly Binding[] {
    return this.#bindings
  }

  /** The same binding twice is one. */
  bind(key: string, queue: Queue): void {
    if (this.#bindings.some((binding) => binding.key === key && binding.queue === queue)) return
    this.#bindings.push({ key, queue })
    this.#routes.clear()
  }

  /** One that is not there counts as removed. */
  unbind(isRemoved: (binding: Binding) => boolean): void {
    this.#bindings = this.#bindings.filter((binding) => !isRemoved(binding))
    this.#routes.clear()
  }

  /** Each queue once, whatever number of bindings match. */
  route(key: string): readonly Queue[] {
    const known = this.#routes.get(key)
    if (known !== undefined) return known
    const words = wordsOf(key)
    const matching = this.#bindings.filter((binding) => this.#matches(binding.key, key, words))
    const queues = [...new Set(matching.map(({ queue }) => queue))]
    this.#routes.set(key, queues)
    return queues
  }

  #matches(bound: string, key: string, words: readonly string[]): boolean {
    if (this.type === 'fanout') return true
    return this.type === 'direct' ? bound === key : matches(wordsOf(bound), words)
  }
}

/** RabbitMQ takes an empty key for one without words. */
function wordsOf(key: string): readonly string[] {
  return key === '' ? [] : key.split('.')
}

function matches([first, ...rest]: readonly string[], words: readonly string[]): boolean {
  if (first === undefined) return words.length === 0
  if (first === '#') return words.some((_, at) => matches(rest, words.slice(at))) || matches(rest, [])
  const [word, ...others] = words
  return word !== undefined && (first === '*' || first === word) && matches(rest, others)
}

export function isExchangeType(type: string): type is ExchangeType {
  return type === 'topic' || type === 'direct' || type === 'fanout'
}

/** What differs between a declaration and what there is closes the channel. */
export function assertSame(what: string, name: string, received: unknown, current: unknown): void {
  if (received === current) return
  const [was, is] = [received, current].map((value) => (value === undefined ? 'none' : `'${String(value)}'`))
  const text = `inequivalent arg '${what}' for '${name}' in vhost '/': received ${was} but current is ${is}`
  throw new Refusal(406, text)
}
