// What a page loads with each browser client, by bundler, and the sizes of the parts of webmq-client. Prints the tables of
// docs/client.md. The other clients and webpack come from the npm registry, into a temporary folder.
// Usage: node bench/sizes-of-others.mjs. Needs a build.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { print, ROOT } from '../../../scripts/lib/steps.mjs'
import { TOOL_VERSIONS } from '../../../test/packages/programs.mjs'
import { clientSizes, kib, loadedBytes, PAGE } from './sizes.mjs'

/** What a page writes with each to listen and publish. `graphql` is a peer of graphql-ws. */
const OTHERS = [
  {
    label: 'Phoenix',
    name: 'phoenix',
    version: '1.8.16',
    code: `import { Socket } from 'phoenix'
const socket = new Socket('/socket')
socket.connect()
const channel = socket.channel('chat')
channel.on('message', show)
channel.join()
channel.push('message', { text: 'hi' })`,
  },
  {
    label: 'PartySocket',
    name: 'partysocket',
    version: '1.3.0',
    code: `import { PartySocket } from 'partysocket'
const socket = new PartySocket({ host: location.host, room: 'chat' })
socket.addEventListener('message', show)
socket.send('hi')`,
  },
  {
    label: 'graphql-ws',
    name: 'graphql-ws',
    version: '6.4.2',
    code: `import { createClient } from 'graphql-ws'
const client = createClient({ url: '/graphql' })
client.subscribe({ query: 'subscription { chat }' }, { next: show, error: show, complete: show })`,
  },
  {
    label: 'AnyCable',
    name: '@anycable/web',
    version: '1.1.1',
    code: `import { createCable } from '@anycable/web'
const channel = createCable().streamFrom('chat')
channel.on('message', show)
channel.whisper({ text: 'hi' })`,
  },
  {
    label: 'Socket.IO',
    name: 'socket.io-client',
    version: '4.8.4',
    code: `import { io } from 'socket.io-client'
const socket = io()
socket.on('chat', show)
socket.emit('chat', { text: 'hi' })`,
  },
  {
    label: 'Centrifuge',
    name: 'centrifuge',
    version: '5.8.0',
    code: `import { Centrifuge } from 'centrifuge'
const client = new Centrifuge('/connection')
const subscription = client.newSubscription('chat')
subscription.on('publication', show)
subscription.subscribe()
client.connect()
subscription.publish({ text: 'hi' })`,
  },
  {
    label: 'NATS',
    name: '@nats-io/nats-core',
    version: '3.4.0',
    code: `import { wsconnect } from '@nats-io/nats-core'
wsconnect({ servers: 'wss://localhost' }).then((connection) => {
  connection.subscribe('chat.*', { callback: (_, message) => show(message) })
  connection.publish('chat.1', 'hi')
})`,
  },
  {
    label: 'Ably, in parts',
    name: 'ably',
    version: '2.28.0',
    code: `import { BaseRealtime, FetchRequest, WebSocketTransport } from 'ably/modular'
const channel = new BaseRealtime({ key: 'k', plugins: { FetchRequest, WebSocketTransport } }).channels.get('chat')
channel.subscribe(show)
channel.publish('chat', { text: 'hi' })`,
  },
  {
    label: 'Ably',
    name: 'ably',
    version: '2.28.0',
    code: `import { Realtime } from 'ably'
const channel = new Realtime('k').channels.get('chat')
channel.subscribe(show)
channel.publish('chat', { text: 'hi' })`,
  },
]
const SHOW = '\nfunction show(message) {\n  document.body.append(JSON.stringify(message))\n}\n'
const ALSO = ['graphql@16.11.0', `webpack@${TOOL_VERSIONS.webpack}`]

const folder = mkdtempSync(path.join(tmpdir(), 'webmq-sizes-'))
try {
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  const packages = new Set([...ALSO, ...OTHERS.map(({ name, version }) => `${name}@${version}`)])
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error']
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const own = await clientSizes()
  print(
    table(
      ['import', 'KiB'],
      own.map(({ name, bytes }) => [`\`${name}\``, kib(bytes)]),
    ),
  )
  const modules = path.join(folder, 'node_modules')
  symlinkSync(path.join(ROOT, 'packages/client'), path.join(modules, 'webmq-client'))
  const measure = (code) => loadedBytes(code, modules, { withWebpack: true })
  const rows = [{ label: 'WebMQ', version: '', bytes: await measure(PAGE) }]
  for (const { label, name, version, code } of OTHERS) {
    const installed = JSON.parse(readFileSync(path.join(modules, name, 'package.json'), 'utf8')).version
    if (installed !== version) throw new Error(`${name} ${installed} is not ${version}`)
    rows.push({ label, version: `${name} ${version}`, bytes: await measure(code + SHOW) })
  }
  rows.sort((a, b) => a.bytes.Vite - b.bytes.Vite)
  print(
    `\n${table(
      ['client', 'package', ...Object.keys(rows[0].bytes)],
      rows.map(({ label, version, bytes }) => [label, version, ...Object.values(bytes).map(kib)]),
    )}`,
  )
} finally {
  rmSync(folder, { recursive: true })
}

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
