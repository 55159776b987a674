import { WebMQClient } from '../../packages/client/src/core/client.js'
import type { WebSocketLike } from '../../packages/client/src/core/client-options.js'
import type { Subscription } from '../../packages/client/src/core/types.js'
import { WebMQError } from '../../packages/client/src/protocol/errors.js'
import { CommandError, type Drive } from '../checker/clients/drive.js'
import { VirtualSocket } from './network.js'

/** As short as those of the checker's own connections: a run has less time than a user. */
const RECONNECT = { minMs: 40, maxMs: 640 }

/** A WebSocket as browsers have it, on the network of this process. */
class BrowserSocket implements WebSocketLike {
  binaryType = 'arraybuffer'
  readonly bufferedAmount = 0
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  readonly #socket: VirtualSocket

  constructor(url: string) {
    this.#socket = new VirtualSocket(url)
    this.#socket.on('open', () => this.onopen?.({} as never))
    this.#socket.on('message', (data: Buffer) => this.onmessage?.({ data: data.toString() } as never))
    this.#socket.on('error', ({ message }: Error) => this.onerror?.({ message } as never))
    this.#socket.on('close', (code: number) => this.onclose?.({ code, reason: '' } as never))
  }

  send(data: never): void {
    this.#socket.send(data)
  }

  close(code = 1000): void {
    this.#socket.close(code)
  }
}

type Item = Readonly<Record<string, unknown>>

interface Listening {
  readonly items: Item[]
  readonly subscription: Subscription
  error: unknown
  wake: () => void
}

type Command = Readonly<Record<string, unknown>>

/** Commands of the actors of test/checker/clients, done by the real client in this process. */
class ClientAdapter {
  readonly #clients = new Map<unknown, WebMQClient>()
  readonly #listeners = new Map<unknown, Listening>()

  async call({ do: name, ...command }: Command): Promise<Item> {
    try {
      return await this.#do(String(name), command)
    } catch (error) {
      if (error instanceof WebMQError) throw new CommandError(error.code, error.message, error.retryable)
      throw error
    }
  }

  async #do(name: string, command: Command): Promise<Item> {
    switch (name) {
      case 'connect': {
        const client = new WebMQClient({ url: String(command.url), WebSocket: BrowserSocket, reconnect: RECONNECT })
        // What belongs to no command; a listener's own come by `take`.
        client.on('error', () => undefined)
        this.#clients.set(command.client, client)
        await client.connect()
        return {}
      }
      case 'publish': {
        const { key, payload, messageId, noEcho } = command
        const options = { id: String(messageId), ...(noEcho === true ? { echo: false } : {}) }
        return { ...(await this.#client(command).publish(String(key), payload as object, options)) }
      }
      case 'listen':
        return await this.#listen(command)
      case 'take':
        return { items: await this.#take(command) }
      case 'unlisten':
        await this.#listeners.get(command.listener)?.subscription.close()
        return {}
      case 'close':
        await this.#client(command).close()
        return {}
    }
    throw new Error(`no actor asks for ${name}`)
  }

  #client({ client }: Command): WebMQClient {
    const found = this.#clients.get(client)
    if (found === undefined) throw new Error(`there is no client ${String(client)}`)
    return found
  }

  async #listen({ since, last, rewindMs, ...command }: Command): Promise<Item> {
    const items: Item[] = []
    const put = (item: Item) => {
      items.push(item)
      listening.wake()
    }
    const options = {
      ...(since === undefined ? {} : { since: String(since) }),
      ...(last === undefined ? {} : { last: Number(last) }),
      ...(rewindMs === undefined ? {} : { rewind: Number(rewindMs) }),
    }
    const subscription = this.#client(command).listen(
      String(command.pattern),
      (payload, { key, position, replayed }) => put({ key, position, isReplay: replayed, payload }),
      options,
    )
    const listening: Listening = { items, subscription, error: undefined, wake: () => undefined }
    subscription.on('gap', ({ reason }) => put({ gap: reason }))
    subscription.on('closed', () => put({ ended: true }))
    subscription.on('error', (error) => {
      listening.error = error
      listening.wake()
    })
    this.#listeners.set(command.listener, listening)
    await subscription.ready
    return {}
  }

  async #take({ listener }: Command): Promise<readonly Item[]> {
    const listening = this.#listeners.get(listener)
    if (listening === undefined) throw new Error(`nobody listens as ${String(listener)}`)
    while (listening.items.length === 0 && listening.error === undefined)
      await new Promise<void>((resolve) => {
        listening.wake = resolve
      })
    if (listening.items.length > 0) return listening.items.splice(0)
    throw listening.error
  }
}

/** What an actor of a real client needs. */
export function createDrive(failed: Drive['failed']): Drive {
  return { adapter: new ClientAdapter(), prefix: '', failed }
}
