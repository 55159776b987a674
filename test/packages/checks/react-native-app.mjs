// An app for phones: what its developer has beside the blocks of docs/client/react-native.md, and what plays the phone.

// As for the Hermes of React Native before 0.84, which knows no classes: the newest that npm has for computers is older.
const BABEL = `
module.exports = { presets: [['module:@react-native/babel-preset', { unstable_transformProfile: 'default' }]] }`

// Hermes alone: nothing of React Native runs before the program.
const METRO = `
const { getDefaultConfig, mergeConfig } = require('@react-native/metro-config')
module.exports = mergeConfig(getDefaultConfig(__dirname), {
  serializer: { getModulesRunBeforeMainModule: () => [], getPolyfills: () => [] },
})`

/** The native half of React Native's WebSocket, over a real socket, on a network that may be away. */
const NATIVE_SOCKET = `
const { WebSocket } = require('ws')

const sockets = new Map()
const network = {
  isAway: false,
  connectCount: 0,
  openCount: () => sockets.size,
  cut: () => sockets.forEach((socket) => socket.terminate()),
}
const emit = (event, body) => require('react-native').DeviceEventEmitter.emit(event, body)
const tell = (event, body) => network.isAway || emit(event, body)

exports.network = network
exports.module = {
  addListener() {},
  removeListeners() {},
  connect(url, protocols, _, id) {
    network.connectCount++
    if (network.isAway) {
      setTimeout(() => emit('websocketFailed', { id, message: 'The network is away.' }), 1)
      return
    }
    const socket = new WebSocket(url, protocols)
    sockets.set(id, socket)
    socket.on('open', () => tell('websocketOpen', { id, protocol: socket.protocol }))
    socket.on('message', (data, isBinary) =>
      tell('websocketMessage', isBinary
        ? { id, type: 'binary', data: data.toString('base64') }
        : { id, type: 'text', data: data.toString() }))
    socket.on('error', ({ message }) => tell('websocketFailed', { id, message }))
    socket.on('close', (code, reason) => {
      sockets.delete(id)
      tell('websocketClosed', { id, code, reason: String(reason) })
    })
  },
  send: (text, id) => network.isAway || sockets.get(id)?.send(text),
  sendBinary: (base64, id) => network.isAway || sockets.get(id)?.send(Buffer.from(base64, 'base64')),
  ping() {},
  close: (code, reason, id) => sockets.get(id)?.close(code, reason),
}`

/** As React Native before 0.85. */
const ENGINE_OF_BEFORE = 'delete globalThis.TextDecoder'

const PHONE = `
import './engine-of-before'
import { appLifecycle } from 'webmq-client/native'
import NetInfo from '@react-native-community/netinfo'
import { AppState } from 'react-native'
import { URL } from 'react-native/Libraries/Blob/URL'
import WebSocket from 'react-native/Libraries/WebSocket/WebSocket'
import { setup } from 'webmq-client'
import { network } from './native-socket'

jest.mock('@react-native-community/netinfo', () => require('@react-native-community/netinfo/jest/netinfo-mock.js'))
jest.mock('react-native/Libraries/WebSocket/NativeWebSocketModule', () => ({
  __esModule: true,
  default: require('./native-socket').module,
}))
globalThis.URL = URL

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
async function until(isTrue, ms = 5000) {
  const endMs = Date.now() + ms
  while (!isTrue()) {
    if (Date.now() > endMs) throw new Error('not in ' + ms + ' ms: ' + isTrue)
    await pause(10)
  }
}
const calls = (mock) => mock.mock.calls.map((args) => args.at(-1))
const goTo = (state) => {
  AppState.currentState = state
  for (const change of calls(AppState.addEventListener)) change(state)
}
const reach = (state) => calls(NetInfo.addEventListener).forEach((tell) => tell(state))

it('listens and publishes, in the background, in the foreground, without a network and on another one', async () => {
  goTo('active')
  const client = setup({ url: process.env.WEBMQ_URL, WebSocket, lifecycle: appLifecycle({ AppState, NetInfo }) })
  const errors = []
  client.on('error', ({ error }) => errors.push(error))
  const heard = []
  client.listen('phone.*', (payload) => heard.push(ArrayBuffer.isView(payload) ? new TextDecoder().decode(payload) : payload))
  await client.connect()
  reach({ type: 'wifi', isConnected: true, details: { ipAddress: '192.168.1.2' } })
  await client.publish('phone.text', 'grüß 🎉')
  await client.publish('phone.bytes', new TextEncoder().encode('bytes 🎉'))
  await until(() => heard.length === 2)
  expect(heard).toEqual(['grüß 🎉', 'bytes 🎉'])

  goTo('background')
  network.cut()
  await until(() => client.state === 'reconnecting')
  const { connectCount } = network
  const late = client.publish('phone.text', 'late')
  await pause(1500)
  expect([client.state, network.connectCount]).toEqual(['reconnecting', connectCount])
  goTo('active')
  await until(() => client.state === 'connected', 2000)
  await late
  await until(() => heard.length === 3)

  network.isAway = true
  reach({ type: 'none', isConnected: false, details: null })
  await until(() => client.state === 'reconnecting', 4000)
  network.isAway = false
  reach({ type: 'cellular', isConnected: true, details: {} })
  await until(() => client.state === 'connected', 2000)
  await client.publish('phone.text', 'on another network')
  await until(() => heard.length === 4)
  expect(heard.slice(2)).toEqual(['late', 'on another network'])
  expect(errors).toEqual([])

  const { remove } = AppState.addEventListener.mock.results[0].value
  await client.close()
  await until(() => network.openCount() === 0)
  expect(remove).toHaveBeenCalledTimes(1)
}, 30000)

it('explains mistakes in development', () => {
  require('./development')
  expect(() => setup({ url: 'ws://phone.example/ws', ackTimeoutMs: -1 })).toThrow(/ackTimeoutMs/)
})`

/** What React Native gives Hermes before an app runs, as far as the client uses it: of a version with little. */
const ENGINE = `
import { AbortController } from 'abort-controller/dist/abort-controller'

globalThis.AbortController = AbortController
// This program calls timers at once, whatever their time; nothing here needs one.
globalThis.setTimeout = () => 0
globalThis.clearTimeout = () => undefined
globalThis.URL = class {
  constructor(url) {
    this.href = url
  }
}
globalThis.queueMicrotask = (task) => void Promise.resolve().then(task)
globalThis.console = { log: print, warn: print, error: print, assert: () => undefined }
globalThis.TextEncoder = class {
  encode(text) {
    return Uint8Array.from(unescape(encodeURIComponent(text)), (char) => char.charCodeAt(0))
  }
  encodeInto(text, target) {
    const bytes = this.encode(text)
    target.set(bytes)
    return { read: text.length, written: bytes.length }
  }
}`

const HERMES = `
import './engine'
import 'webmq-client/native'
import { WebMQClient } from 'webmq-client'
import { iterate } from 'webmq-client/parts'
import { createTestServer } from 'webmq-client/testing'

async function main() {
  const server = createTestServer()
  const client = new WebMQClient({ url: 'ws://phone.example/ws', WebSocket: server.WebSocket })
  const messages = iterate('phone.#', { client })
  await client.connect()
  await client.publish('phone.text', { text: 'grüß 🎉' })
  await client.publish('phone.bytes', new TextEncoder().encode('bytes 🎉'))
  const heard = []
  for await (const { payload } of messages) {
    heard.push(payload instanceof Uint8Array ? new TextDecoder().decode(payload) : payload.text)
    if (heard.length === 2) break
  }
  await client.close()
  print('heard ' + heard.join(', '))
}
main().catch((error) => print('failed: ' + error.stack))`

/** A strict project of React Native, without the types of browsers. */
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: 'esnext',
    module: 'esnext',
    moduleResolution: 'bundler',
    customConditions: ['react-native'],
    lib: ['es2023'],
    types: ['react-native'],
  },
  files: ['setup.ts'],
}

/** Files of the app by their names. @param {Record<'setup' | 'development' | 'jest', string>} blocks of the page */
export const filesOf = (blocks) => ({
  'package.json': { name: 'phone', private: true },
  'babel.config.js': BABEL,
  'metro.config.js': METRO,
  'jest.config.js': blocks.jest,
  'tsconfig.json': TSCONFIG,
  'setup.ts': blocks.setup,
  'development.js': blocks.development,
  'native-socket.js': NATIVE_SOCKET,
  'engine-of-before.js': ENGINE_OF_BEFORE,
  'phone.test.js': PHONE,
  'engine.js': ENGINE,
  'hermes.js': HERMES,
})
