// Sizes of browser clients, and of the parts of webmq-client: esbuild, minified, ES2022, gzip -9. Prints the tables of
// docs/client.md. The other clients come from the npm registry, into a temporary folder.
// Usage: node scripts/measure/client-sizes.mjs. Needs a build.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { bundledBytes, clientSizes, kib } from '../lib/client-sizes.mjs'
import { print } from '../lib/steps.mjs'

/** What an app imports of each to listen and publish. `graphql` is a peer of graphql-ws that apps have. */
const OTHERS = [
  { label: 'Phoenix', name: 'phoenix', version: '1.8.16', code: "export { Socket } from 'phoenix'" },
  { label: 'PartySocket', name: 'partysocket', version: '1.3.0', code: "export { PartySocket } from 'partysocket'" },
  { label: 'graphql-ws', name: 'graphql-ws', version: '6.4.2', code: "export { createClient } from 'graphql-ws'" },
  { label: 'AnyCable', name: '@anycable/web', version: '1.1.1', code: "export { createCable } from '@anycable/web'" },
  { label: 'Socket.IO', name: 'socket.io-client', version: '4.8.4', code: "export { io } from 'socket.io-client'" },
  { label: 'Centrifuge', name: 'centrifuge', version: '5.8.0', code: "export { Centrifuge } from 'centrifuge'" },
  {
    label: 'NATS',
    name: '@nats-io/nats-core',
    version: '3.4.0',
    code: "export { wsconnect } from '@nats-io/nats-core'",
  },
  {
    label: 'Ably, in parts',
    name: 'ably',
    version: '2.28.0',
    code: "export { BaseRealtime, FetchRequest, WebSocketTransport } from 'ably/modular'",
  },
  { label: 'Ably', name: 'ably', version: '2.28.0', code: "export { Realtime } from 'ably'" },
]
const PEERS = ['graphql']

const folder = mkdtempSync(path.join(tmpdir(), 'webmq-sizes-'))
try {
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  const packages = new Set(OTHERS.map(({ name, version }) => `${name}@${version}`))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error']
  execFileSync('npm', ['install', ...flags, ...packages], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const own = await clientSizes()
  print(
    table(
      ['import', 'KiB'],
      own.map(({ name, bytes }) => [`\`${name}\``, kib(bytes)]),
    ),
  )
  const rows = [{ label: 'WebMQ', version: '', bytes: own[0]?.bytes ?? 0 }]
  for (const { label, name, version, code } of OTHERS) {
    const installed = JSON.parse(readFileSync(path.join(folder, 'node_modules', name, 'package.json'), 'utf8')).version
    if (installed !== version) throw new Error(`${name} ${installed} is not ${version}`)
    rows.push({ label, version: `${name} ${version}`, bytes: await bundledBytes(code, folder, PEERS) })
  }
  rows.sort((a, b) => a.bytes - b.bytes)
  print(
    `\n${table(
      ['client', 'package', 'KiB'],
      rows.map(({ label, version, bytes }) => [label, version, kib(bytes)]),
    )}`,
  )
} finally {
  rmSync(folder, { recursive: true })
}

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
