// Drives `webmq-client` for `webmq-conformance client`, and is the example of an adapter.
import { createInterface } from 'node:readline'
import { WebMQClient, WebMQError } from 'webmq-client'
import { history, presence, request, respond, state } from 'webmq-client/parts'
import { openStream, readStream } from 'webmq-client/stream'

// Node 20 has none.
const WebSocket = globalThis.WebSocket ?? (await import('ws')).default

let clients = new Map()
let listeners = new Map()
let writers = new Map()
let readers = new Map()
let rooms = new Map()

/** What comes, and who waits for it. */
class Queue {
  #items = []
  #waiter

  put(item) {
    this.#items.push(item)
    this.#waiter?.()
  }

  async next() {
    while (this.#items.length === 0) {
      await new Promise((resolve) => {
        this.#waiter = resolve
      })
    }
    const item = this.#items.shift()
    if (item instanceof Error) throw item
    return item
  }

  /** What waits, up to an error. */
  rest() {
    const end = this.#items.findIndex((item) => item instanceof Error)
    return this.#items.splice(0, end < 0 ? this.#items.length : end)
  }
}

const shown = (payload) =>
  payload instanceof Uint8Array ? { base64: Buffer.from(payload).toString('base64') } : { payload: payload ?? null }

/** The data of members, each with the number of those that have it. */
const counted = (members) => {
  const counts = {}
  for (const { data } of members) counts[data] = (counts[data] ?? 0) + 1
  return counts
}

const commands = {
  async connect({ client: name, url, tokens }) {
    const rest = [...(tokens ?? [])]
    const token = () => {
      const given = rest.length > 1 ? rest.shift() : rest[0]
      if (given === 'throw') throw new Error('no token now')
      return given
    }
    const client = new WebMQClient({
      url,
      WebSocket,
      ...(tokens && { token }),
    })
    // What belongs to no command; a listener's own come by `next`.
    client.on('error', () => undefined)
    clients.set(name, client)
    await client.connect()
  },
  async waitStatus({ client: name, status }) {
    const client = clients.get(name)
    const isSo = () => {
      const { state } = client.status
      return status === 'connecting' ? state !== 'connected' && state !== 'closed' : state === status
    }
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
  },
  async publish({ client, key, payload, base64, messageId, noEcho, ephemeral }) {
    const { position = null, duplicate } = await clients
      .get(client)
      .publish(key, base64 === undefined ? payload : Buffer.from(base64, 'base64'), {
        ...(messageId && { id: messageId }),
        ...(noEcho && { echo: false }),
        ...(ephemeral && { ephemeral }),
      })
    return { position, duplicate }
  },
  async publishMany({ client, key, count }) {
    await Promise.all(Array.from({ length: count }, (_, n) => clients.get(client).publish(key, n)))
  },
  async publishSize({ client, key, characters }) {
    await clients.get(client).publish(key, 'x'.repeat(characters))
  },
  async listen({ client, listener, pattern, since, last, rewindMs }) {
    const queue = new Queue()
    const subscription = clients.get(client).listen(
      pattern,
      (payload, { key, position = null, replayed }) => {
        queue.put({ key, position, isReplay: replayed, ...shown(payload) })
      },
      { ...(since && { since }), ...(last && { last }), ...(rewindMs && { rewind: rewindMs }) },
    )
    subscription.on('gap', ({ reason }) => queue.put({ gap: reason }))
    subscription.on('error', (error) => queue.put(error))
    subscription.on('closed', () => queue.put({ ended: true }))
    listeners.set(listener, { queue, close: () => subscription.close() })
    await subscription.ready
    return {}
  },
  unlisten: ({ listener }) => listeners.get(listener).close(),
  next: ({ listener }) => listeners.get(listener).queue.next(),
  async take({ listener }) {
    const { queue } = listeners.get(listener)
    return { items: [await queue.next(), ...queue.rest()] }
  },
  async nextMany({ listener, count }) {
    const numbers = []
    let gaps = 0
    while (numbers.length < count) {
      const item = await listeners.get(listener).queue.next()
      if (item.gap) gaps++
      else numbers.push(item.payload.n)
    }
    const ascending = numbers.every((number, index) => index === 0 || number > numbers[index - 1])
    return { gaps, first: numbers[0], last: numbers.at(-1), ascending }
  },
  isGap({ item }) {
    if (typeof item !== 'string') throw new Error('no gap was told')
  },
  async history({ client, key, last, before }) {
    const {
      messages,
      position = null,
      gap = null,
      more,
    } = await history(key, {
      client: clients.get(client),
      ...(last && { limit: last }),
      ...(before && { before }),
    })
    const positions = messages.map((message) => message.position)
    const payloads = messages.map(({ payload }) => payload)
    return { payloads, positions, firstPosition: positions[0] ?? null, position, gap, more }
  },
  async state({ client, listener, pattern }) {
    const queue = new Queue()
    const store = state(pattern, { client: clients.get(client) })
    const tell = () => queue.put({ values: Object.fromEntries(store.entries()) })
    store.subscribe(tell)
    listeners.set(listener, { queue, close: () => store.close() })
    await store.ready
    tell()
  },
  async enter({ client, key, data }) {
    const room = rooms.get(`${client} ${key}`) ?? presence(key, { client: clients.get(client) })
    rooms.set(`${client} ${key}`, room)
    await room.enter(data)
  },
  leave: ({ client, key }) => rooms.get(`${client} ${key}`)?.leave(),
  async present({ client, key }) {
    return { values: counted(await presence(key, { client: clients.get(client) }).get()) }
  },
  async watch({ client, listener, key }) {
    const queue = new Queue()
    const room = presence(key, { client: clients.get(client) })
    const members = new Map()
    let told
    const tell = () => {
      const values = counted([...members.values()])
      if (JSON.stringify(values) !== JSON.stringify(told)) queue.put({ values })
      told = values
    }
    const synced = new Promise((resolve, reject) => {
      room.on('error', (error) => {
        reject(error)
        queue.put(error)
      })
      for (const event of ['enter', 'update']) room.on(event, (member) => members.set(member.id, member))
      room.on('leave', ({ id }) => members.delete(id))
      room.on('sync', resolve)
    })
    await synced
    for (const event of ['enter', 'update', 'leave', 'sync']) room.on(event, tell)
    listeners.set(listener, { queue, close: () => room.close() })
    tell()
  },
  async respond({ client, pattern, replies }) {
    const answer = (payload) => {
      if (replies.error) throw new WebMQError(replies.error)
      return payload
    }
    await respond(pattern, answer, { client: clients.get(client) }).ready
  },
  request: async ({ client, key, payload }) => ({
    payload: await request(key, payload, { client: clients.get(client) }),
  }),
  async openStream({ client, writer, key, meta, stream }) {
    writers.set(writer, await openStream(key, { client: clients.get(client), meta, ...(stream && { id: stream }) }))
  },
  append: ({ writer, content }) => writers.get(writer).append(content),
  endStream: ({ writer, result }) => writers.get(writer).end(result),
  async waitStopped({ writer }) {
    const { signal } = writers.get(writer)
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
  },
  readStream({ client, reader, key }) {
    const stream = readStream(key, { client: clients.get(client) })
    readers.set(reader, { stream, parts: stream[Symbol.asyncIterator]() })
  },
  async streamNext({ reader }) {
    const { stream, parts } = readers.get(reader)
    const { done, value } = await parts.next()
    return done
      ? { stream: stream.id, status: stream.status, result: stream.result ?? null }
      : { stream: stream.id, content: value.text, isWhole: value.isWhole }
  },
  stopStream: ({ reader }) => readers.get(reader).stream.stop(),
  close: ({ client }) => clients.get(client).close(),
  async reset() {
    await Promise.all([...clients.values()].map((client) => client.close()))
    clients = new Map()
    listeners = new Map()
    writers = new Map()
    readers = new Map()
    rooms = new Map()
  },
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

/** What is nested too deeply to be shown came all the same. */
const sayOk = (id, ok) => {
  try {
    say({ id, ok })
  } catch {
    say({ id, ok: { payload: 'not shown' } })
  }
}
say({ hello: { name: 'webmq-client', can: ['checker', 'history', 'presence', 'requests', 'state', 'streams'] } })
for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: name, ...command } = JSON.parse(line)
  Promise.resolve()
    .then(() => commands[name](command))
    .then(
      (ok) => sayOk(id, ok ?? {}),
      ({ code, name, message, retryable = false }) => say({ id, error: { code: code ?? name, message, retryable } }),
    )
}
process.exit(0)
