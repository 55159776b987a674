/** What happens to a message when the buffer is full. */
export type BufferOverflow = 'close' | 'drop-oldest' | 'drop-newest'

type Result<T> = IteratorResult<T, undefined>

interface Reader<T> {
  resolve(result: Result<T>): void
  reject(error: unknown): void
}

const DONE = { done: true, value: undefined } as const

/** A bounded queue between arriving messages and a loop that takes them one by one. */
export class MessageBuffer<T> {
  readonly #maxMessages: number
  readonly #overflow: BufferOverflow
  readonly #items: T[] = []
  readonly #readers: Reader<T>[] = []
  /** Called when every message was taken. */
  #onEmpty: (() => void) | undefined
  /** Called with each message that is taken. */
  onTaken: ((item: T) => void) | undefined
  #ended = false
  #error: unknown

  constructor(maxMessages: number, overflow: BufferOverflow) {
    this.#maxMessages = maxMessages
    this.#overflow = overflow
  }

  get size(): number {
    return this.#items.length
  }

  /** Resolves when every message was taken, or none will be; `undefined` if that is so now. Called again only then. */
  whenEmpty(): Promise<void> | undefined {
    if (this.#items.length === 0 || this.#ended) return undefined
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }

  /**
   * Adds a message. `dropped`: the buffer was full, and one message was dropped. `full`: the caller must end the loop.
   */
  push(item: T): 'kept' | 'dropped' | 'full' {
    const reader = this.#readers.shift()
    if (reader) {
      this.onTaken?.(item)
      reader.resolve({ done: false, value: item })
    } else if (this.#items.length < this.#maxMessages) this.#items.push(item)
    else if (this.#overflow === 'close') return 'full'
    else {
      if (this.#overflow === 'drop-oldest') {
        this.#items.shift()
        this.#items.push(item)
      }
      return 'dropped'
    }
    return 'kept'
  }

  /**
   * Resolves with the oldest message, once there is one; after the end, with the remaining messages and then `done`.
   */
  next(): Promise<Result<T>> {
    if (this.#items.length > 0) {
      const value = this.#items.shift() as T
      this.onTaken?.(value)
      if (this.#items.length === 0) this.#onEmpty?.()
      return Promise.resolve({ done: false, value })
    }
    if (this.#error !== undefined) return Promise.reject(this.#error)
    if (this.#ended) return Promise.resolve(DONE)
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }))
  }

  /** No more messages follow. Readers get the remaining messages, then the error if there is one. */
  end(error?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    this.#onEmpty?.()
    for (const reader of this.#readers.splice(0)) {
      if (error === undefined) reader.resolve(DONE)
      else reader.reject(error)
    }
  }
}
