import { WebMQError } from '../../protocol/errors.js'
import type { OutboxMessage, OutboxStore, StoredMessage, StoreLimits } from './store.js'

const MESSAGES = 'messages'
const TOTALS = 'totals'
/** The only row of `totals`: bytes of all messages. */
const BYTES = 'bytes'

/** Keeps messages in a database of the browser. It is opened with the first call. */
export class IndexedDbStore implements OutboxStore {
  readonly #name: string
  #opening: Promise<IDBDatabase> | undefined

  constructor(name: string) {
    this.#name = name
  }

  add(message: OutboxMessage, { maxMessages, maxBytes }: StoreLimits): Promise<void> {
    return this.#change(async (messages, totals) => {
      if ((await done(messages.index('name').count([message.key, message.id]))) > 0) return
      const bytes = (((await done(totals.get(BYTES))) as number | undefined) ?? 0) + message.bytes
      if (bytes > maxBytes) throw full(`maxBytes ${maxBytes}`)
      if ((await done(messages.count())) >= maxMessages) throw full(`maxMessages ${maxMessages}`)
      await done(messages.add(message))
      await done(totals.put(bytes, BYTES))
    })
  }

  async list(): Promise<readonly StoredMessage[]> {
    const database = await this.#open()
    return done(database.transaction(MESSAGES).objectStore(MESSAGES).getAll())
  }

  async count(): Promise<number> {
    const database = await this.#open()
    return done(database.transaction(MESSAGES).objectStore(MESSAGES).count())
  }

  mark(place: number, attemptedAtMs: number | undefined): Promise<void> {
    return this.#change(async (messages) => {
      const message = (await done(messages.get(place))) as StoredMessage | undefined
      if (message) await done(messages.put({ ...message, attemptedAtMs }))
    })
  }

  remove(place: number): Promise<void> {
    return this.#change(async (messages, totals) => {
      const message = (await done(messages.get(place))) as StoredMessage | undefined
      if (!message) return
      await done(messages.delete(place))
      await done(totals.put(((await done(totals.get(BYTES))) as number) - message.bytes, BYTES))
    })
  }

  close(): void {
    this.#opening?.then((database) => database.close()).catch(() => undefined)
    this.#opening = undefined
  }

  /** Runs one transaction. Resolves when it is on disk; rejects, and changes nothing, if `change` does. */
  async #change(change: (messages: IDBObjectStore, totals: IDBObjectStore) => Promise<void>): Promise<void> {
    const database = await this.#open()
    // `strict`: a message that counts as stored survives a crash of the machine.
    const transaction = database.transaction([MESSAGES, TOTALS], 'readwrite', { durability: 'strict' })
    const committed = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error ?? new DOMException('aborted', 'AbortError'))
    })
    try {
      await change(transaction.objectStore(MESSAGES), transaction.objectStore(TOTALS))
      await committed
    } catch (cause) {
      committed.catch(() => undefined)
      // Fails if the transaction has ended already; the first error counts.
      try {
        transaction.abort()
      } catch {
        // It has ended.
      }
      throw cause instanceof WebMQError ? cause : errorOf(cause)
    }
  }

  #open(): Promise<IDBDatabase> {
    if (this.#opening) return this.#opening
    const opening = new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(this.#name, 1)
      request.onupgradeneeded = () => {
        const messages = request.result.createObjectStore(MESSAGES, { keyPath: 'place', autoIncrement: true })
        messages.createIndex('name', ['key', 'id'], { unique: true })
        request.result.createObjectStore(TOTALS)
      }
      request.onsuccess = () => {
        const { result } = request
        // The user has deleted the site's data, or a later version wants to change the database.
        const forget = () => {
          if (this.#opening === opening) this.#opening = undefined
        }
        result.onversionchange = () => {
          forget()
          result.close()
        }
        result.onclose = forget
        resolve(result)
      }
      request.onerror = () => reject(request.error)
    }).catch((cause: unknown) => {
      throw errorOf(cause)
    })
    this.#opening = opening
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined
    })
    return opening
  }
}

/** The result of a request. A promise of IndexedDB must not wait for anything else: its transaction would end. */
function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

function full(detail: string): WebMQError {
  return new WebMQError('E_QUEUE_FULL', { detail })
}

/** No space, or no database: some browsers have none in private windows. */
function errorOf(cause: unknown): WebMQError {
  const { name } = (cause ?? {}) as { name?: string }
  const code = name === 'QuotaExceededError' ? 'E_QUEUE_FULL' : 'E_UNSUPPORTED'
  return new WebMQError(code, { detail: `IndexedDB: ${name}`, cause })
}
