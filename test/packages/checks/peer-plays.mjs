// Programs of an application that has a peer already: each uses the part of WebMQ that needs it, and prints `played`.

/** Argument: address of the broker. */
const BROKER = `
import { createServer } from 'webmq-server'

const [broker] = process.argv.slice(2)
// The log of the version before is still there.
const key = 'room.' + process.pid
const server = await createServer({ broker, port: 0, host: '127.0.0.1', history: ['room.*=10'] })
await server.start()
let ready
const heard = new Promise((resolve) => ({ ready } = server.listen('room.*', ({ n }) => n === 3 && resolve())))
await ready
for (const n of [1, 2, 3]) await server.publish(key, { n })
await heard
const { messages } = await server.history(key)
const logged = messages.map(({ payload }) => payload.n).join()
if (logged !== '1,2,3') throw new Error('the log has ' + logged)
await server.stop()
console.log('played')
`

/** Argument: address of a database with the table. */
const OUTBOX = `
import { createServer } from 'webmq-server'
import pg from 'pg'

const url = process.argv[2]
const server = await createServer({ outbox: { url }, port: 0, host: '127.0.0.1' })
await server.start()
let ready
const heard = new Promise((resolve) => ({ ready } = server.listen('orders.1', resolve)))
await ready
const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query("INSERT INTO webmq_outbox (key, payload) VALUES ('orders.1', '{\\"total\\": 99}')")
const { total } = await heard
if (total !== 99) throw new Error('heard ' + total)
await client.end()
await server.stop()
console.log('played')
`

/** A handler whose message belongs to a trace, and a publish that belongs to none. */
const SPANS = `
import { createServer } from 'webmq-server'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const warnings = []
const [warn, ignore] = [(...line) => warnings.push(line), () => undefined]
const logger = { trace: ignore, debug: ignore, info: ignore, warn, error: warn, fatal: warn, child: () => logger }
const server = await createServer({ port: 0, host: '127.0.0.1', logger })
await server.start()
let ready
const heard = new Promise((resolve) => ({ ready } = server.listen('a', (_, { traceparent }) => resolve(traceparent))))
await ready
await server.publish('a', 1, { traceparent: '00-' + TRACE_ID + '-b7ad6b7169203331-01' })
const traceparent = await heard
if (!traceparent.includes(TRACE_ID)) throw new Error('heard ' + traceparent)
// Asks for the span of the caller.
await server.publish('b', 1)
if (warnings.length > 0) throw new Error(JSON.stringify(warnings))
await server.stop()
console.log('played')
`

/** Argument of this one and of those after it: address of a server. Node 20 has no WebSocket of its own. */
const CLIENT = `
import { WebMQClient } from 'webmq-client'

const WebSocket = globalThis.WebSocket ?? (await import('ws')).WebSocket
const newClient = (options) => new WebMQClient({ url: process.argv[2], WebSocket, ...options })
const key = 'trial.' + Math.random().toString(36).slice(2)
const until = async (isTrue) => {
  for (let round = 0; !isTrue(); round++) {
    if (round > 500) throw new Error('nothing in 10 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
`

/** An answer that one device reads from its beginning, and another one from its middle. */
const AI = `${CLIENT}
import { AbstractChat } from 'ai'
import { streamTransport, writeChunks } from 'webmq-client/ai'
import { respond } from 'webmq-client/parts'
import { openStream } from 'webmq-client/stream'

class State {
  status = 'ready'
  error = undefined
  messages = []
  pushMessage = (message) => void (this.messages = [...this.messages, message])
  popMessage = () => void (this.messages = this.messages.slice(0, -1))
  replaceMessage = (index, message) => void (this.messages = this.messages.with(index, message))
  snapshot = (value) => structuredClone(value)
}
class Chat extends AbstractChat {}

const assistant = newClient()
let goOn
const middle = new Promise((resolve) => (goOn = resolve))
async function* answer() {
  yield { type: 'start' }
  yield { type: 'text-start', id: '1' }
  yield { type: 'text-delta', id: '1', delta: 'Hello' }
  await middle
  yield { type: 'text-delta', id: '1', delta: ', world' }
  yield { type: 'text-end', id: '1' }
  yield { type: 'finish' }
}
await respond(key + '.*.ask', async ({ chatId }) => {
  const writer = await openStream(key + '.' + chatId, { client: assistant })
  void writeChunks(writer, answer())
  return { stream: writer.id }
}, { client: assistant }).ready
const device = () => {
  const state = new State()
  const transport = streamTransport({ client: newClient(), key: (chatId) => key + '.' + chatId })
  return { state, chat: new Chat({ id: '1', state, transport }) }
}
const textOf = ({ messages }) =>
  messages.filter(({ role }) => role === 'assistant').flatMap(({ parts }) => parts.map(({ text }) => text ?? '')).join('')
const [one, other] = [device(), device()]
const sent = one.chat.sendMessage({ text: 'Hi' })
await until(() => textOf(one.state) === 'Hello')
const resumed = other.chat.resumeStream()
await until(() => textOf(other.state) === 'Hello')
goOn()
await Promise.all([sent, resumed])
for (const { state } of [one, other]) {
  if (textOf(state) !== 'Hello, world' || state.status !== 'ready') throw new Error(JSON.stringify(state) + state.error)
}
console.log('played')
process.exit()
`

const MSGPACK = `${CLIENT}
import { msgpack } from 'webmq-client/msgpack'

const client = newClient({ codec: msgpack })
const heard = new Promise((resolve) => client.listen(key, resolve))
await client.publish(key, { at: new Date(5), bytes: Uint8Array.of(0, 255), list: [undefined, -1, 2 ** 40, 0.1, 'ä'] })
const text = JSON.stringify(await heard)
if (text !== '{"at":"1970-01-01T00:00:00.005Z","bytes":{"0":0,"1":255},"list":[null,-1,1099511627776,0.1,"ä"]}') throw new Error(text)
if ([...msgpack.encode([{ a: 1 }])].join() !== '145,129,161,97,1') throw new Error('it is not standard MessagePack')
if (msgpack.decode(Uint8Array.of(0xcf, 0, 0, 0, 1, 0, 0, 0, 0)) !== 2 ** 32) throw new Error('an integer is no number')
await client.close()
console.log('played')
`

const YJS = `${CLIENT}
import { createTestServer } from 'webmq-client/testing'
import { YjsProvider } from 'webmq-client/yjs'
import * as Y from 'yjs'

const { url, WebSocket: TestSocket } = createTestServer({ retain: ['board.*.snapshot.#'] })
const open = () => {
  const doc = new Y.Doc()
  const client = newClient({ url, WebSocket: TestSocket })
  return { doc, provider: new YjsProvider(doc, 'board.1', { client }) }
}
const [one, other] = [open(), open()]
await Promise.all([one.provider.whenSynced(), other.provider.whenSynced()])
one.doc.getText('title').insert(0, 'hello')
one.provider.awareness.setLocalStateField('user', { name: 'Ada' })
await until(() => other.doc.getText('title').toString() === 'hello')
await until(() => [...other.provider.awareness.getStates().values()].some(({ user }) => user?.name === 'Ada'))
const third = open()
await third.provider.whenSynced()
await until(() => third.doc.getText('title').toString() === 'hello')
console.log('played')
process.exit()
`

/** Without a window the hooks render for a server, and open no connection. */
const PAGE = `${CLIENT}
import { Window } from 'happy-dom'

const window = new Window()
Object.assign(globalThis, { window, document: window.document })
// Newer versions of Node have one.
globalThis.navigator ??= window.navigator
`

const REACT = `${PAGE}
const { createElement } = await import('react')
const { createRoot } = await import('react-dom/client')
const { useMessages } = await import('webmq-client/react')
const client = newClient()
const Room = () => useMessages(key, { client }).messages.map(({ payload }) => payload).join()
const box = document.createElement('main')
createRoot(box).render(createElement(Room))
await client.publish(key, 'before')
await until(() => box.textContent.includes('before'))
await client.publish(key, 'after')
await until(() => box.textContent.includes('after'))
console.log('played')
process.exit()
`

const VUE = `${PAGE}
const { effectScope, ref } = await import('vue')
const { useMessages } = await import('webmq-client/vue')
const client = newClient()
const { messages } = effectScope().run(() => useMessages(ref(key), { client }))
await client.publish(key, 'hello')
await until(() => messages.value.at(-1)?.payload === 'hello')
console.log('played')
process.exit()
`

const SVELTE = `${PAGE}
const { get } = await import('svelte/store')
const { useMessages } = await import('webmq-client/svelte')
const client = newClient()
const chat = useMessages(key, { client })
chat.subscribe(() => undefined)
await client.publish(key, 'hello')
await until(() => get(chat).messages.at(-1)?.payload === 'hello')
console.log('played')
process.exit()
`

export const PLAYS = { BROKER, OUTBOX, SPANS, AI, MSGPACK, YJS, REACT, VUE, SVELTE }
