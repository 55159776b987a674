import { matches } from '../../packages/check/src/judging/keys.js'
import { placeOf } from '../../packages/check/src/judging/place.js'
import type { ListenerEvent, ListenerRecord, RunRecord } from '../../packages/check/src/judging/record.js'

type OfKind<W extends ListenerEvent['what']> = Extract<ListenerEvent, { what: W }>

/**
 * What listeners of a record have seen, as a module: the run `holds0` fails if a promise to the first of them was broken.
 * Each has one pattern.
 */
export function moduleOf(record: RunRecord, listeners: readonly ListenerRecord[]): string {
  return `module trace {
  import promises.* from "./promises"
${listeners.map((listener, at) => new Translation(record, listener).text(at)).join('')}}
`
}

/** Numbers the epochs, keys and messages of a record, and writes its events as those of `promises.qnt`. */
class Translation {
  readonly #record: RunRecord
  readonly #listener: ListenerRecord
  readonly #epochs = new Map<string, number>()
  readonly #keys = new Map<string, number>()
  readonly #messages = new Map<string, number>()
  readonly #events: string[] = []
  /** Per listen: where its client continues, and the answer whose messages are still to come. */
  readonly #since: (string | undefined)[] = []
  readonly #answers = new Map<number, { readonly ok: OfKind<'ok'>; readonly given: OfKind<'message'>[] }>()
  readonly #live = new Set<number>()

  constructor(record: RunRecord, listener: ListenerRecord) {
    this.#record = record
    this.#listener = listener
  }

  text(number: number): string {
    const facts = this.#facts()
    for (const event of this.#listener.events) this.#translate(event)
    const views = this.#listener.patterns.map((pattern) => {
      const keys = [...this.#keys].filter(([key]) => matches(pattern, key)).map(([, key]) => key)
      return `newView(Set(${keys.join(', ')}))`
    })
    const [known, events, seen] = [`FACTS${number}`, `EVENTS${number}`, `SEEN${number}`]
    return `
  pure val ${known}: Set[Fact] = Set(${facts.join(', ')})
  pure val ${events}: List[Event] = [
    ${this.#events.join(',\n    ')}
  ]
  pure val ${seen}: List[View] =
    ${events}.foldl([${views.join(', ')}], (views, event) => views.seen(${known}, event))
  run holds${number} = assert(${seen}.indices().forall(at => ${seen}[at].faults == Set()))
`
  }

  /** The log, as publishers and listeners were told of it. */
  #facts(): string[] {
    const facts = new Map<string, string>()
    const tell = (key: string, id: string, position: string | undefined) => {
      const place = this.#place(position, id)
      const isWanted = this.#listener.patterns.some((pattern) => matches(pattern, key))
      if (place !== undefined && isWanted)
        facts.set(`${position}`, `{ place: ${place}, key: ${numberOf(this.#keys, key)} }`)
    }
    for (const { messages } of this.#record.publishers)
      for (const { id, key, attempts } of messages) for (const { position } of attempts) tell(key, id, position)
    for (const { events } of this.#record.listeners)
      for (const event of events) if (event.what === 'message') tell(event.key, event.id, event.position)
    return [...facts.values()]
  }

  #translate(event: ListenerEvent): void {
    switch (event.what) {
      case 'asked':
        this.#since[event.listen] = event.since
        return
      case 'ok':
        this.#answers.set(event.listen, { ok: event, given: [] })
        this.#complete(event.listen)
        return
      case 'message':
        if (event.listen === undefined) this.#came(event)
        else this.#replayed(event, event.listen)
        return
      case 'gap':
        this.#events.push(`Gapped(${event.listen})`)
        return
      case 'pong':
        this.#mark(event.position)
        return
      case 'ended':
        this.#end()
        return
      case 'refused':
        return
    }
  }

  #came({ key, id, position }: OfKind<'message'>): void {
    const place = this.#place(position, id)
    if (place === undefined) return
    this.#listener.patterns.forEach((pattern, at) => {
      if (this.#live.has(at) && matches(pattern, key)) this.#events.push(`Live((${at}, ${place}))`)
    })
    this.#mark(position)
  }

  #mark(position: string | undefined): void {
    const place = this.#place(position)
    if (place !== undefined) for (const at of this.#live) this.#events.push(`Marked((${at}, ${place}))`)
  }

  #replayed(event: OfKind<'message'>, listen: number): void {
    this.#answers.get(listen)?.given.push(event)
    this.#complete(listen)
  }

  #complete(listen: number): void {
    const answer = this.#answers.get(listen)
    if (answer === undefined || answer.given.length < answer.ok.replayed) return
    this.#answer(listen, answer.ok.position, answer.ok.isMore)
    if (!answer.ok.isMore) this.#live.add(listen)
  }

  #answer(listen: number, position: string | undefined, isMore: boolean): void {
    const { ok, given } = this.#answers.get(listen) ?? {}
    this.#answers.delete(listen)
    const upTo = this.#place(position)
    if (upTo === undefined || given === undefined) return
    const since = this.#place(this.#since[listen]) ?? 'NOWHERE'
    const prints = given.map(({ id }) => numberOf(this.#messages, id)).join(', ')
    const isGap = ok?.gap !== undefined
    this.#events.push(
      `Answered((${listen}, { since: ${since}, upTo: ${upTo}, given: Set(${prints}), isGap: ${isGap}, isMore: ${isMore} }))`,
    )
  }

  /** An answer whose messages have not all come counts up to the last of them [P-8.9]. */
  #end(): void {
    for (const [listen, { given }] of [...this.#answers]) this.#answer(listen, given.at(-1)?.position, true)
    this.#answers.clear()
    this.#live.clear()
    this.#listener.patterns.forEach((_, at) => {
      this.#events.push(`Ended(${at})`)
    })
  }

  #place(position: string | undefined, id?: string): string | undefined {
    const place = placeOf(position)
    if (place === undefined) return undefined
    const print = id === undefined ? 0 : numberOf(this.#messages, id)
    return `{ epoch: ${numberOf(this.#epochs, place.epoch)}, offset: ${place.offset}, print: ${print} }`
  }
}

/** From 1 on. */
function numberOf(numbers: Map<string, number>, text: string): number {
  const known = numbers.get(text) ?? numbers.size + 1
  numbers.set(text, known)
  return known
}
