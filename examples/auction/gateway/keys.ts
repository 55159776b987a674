/** The names of all keys of an auction. The braces keep them in one slot of a cluster. */
export class Keys {
  readonly #prefix: string
  readonly outbox: string
  readonly due: string
  readonly lease: string

  constructor(namespace: string) {
    this.#prefix = `{${namespace}}`
    this.outbox = `${this.#prefix}:outbox`
    this.due = `${this.#prefix}:due`
    this.lease = `${this.#prefix}:relay`
  }

  item(id: string): string {
    return `${this.#prefix}:item:${id}`
  }

  answers(id: string): string {
    return `${this.#prefix}:answers:${id}`
  }

  events(id: string): string {
    return `${this.#prefix}:events:${id}`
  }
}
