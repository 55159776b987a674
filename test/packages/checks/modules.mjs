import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../../scripts/lib/steps.mjs'
import { TOOL_VERSIONS } from '../programs.mjs'

const CLIENT = JSON.parse(readFileSync(path.join(ROOT, 'packages', 'client', 'package.json'), 'utf8'))
const CLIENT_ENTRIES = Object.keys(CLIENT.exports)
  .filter((name) => name !== './package.json')
  .map((name) => name.replace('.', 'webmq-client'))

/** What entries of the client need beside it, in the versions that it is tested with. */
const PEERS = [...Object.keys(CLIENT.peerDependencies), '@types/react'].map(
  (name) => `${name}@${CLIENT.devDependencies[name]}`,
)

const ENTRIES = [
  ...CLIENT_ENTRIES,
  'webmq-server',
  'webmq-server/brokers',
  'webmq-server/outbox',
  'webmq-server/ports',
  'webmq-server/transports',
  'webmq-native',
]

export const TYPED = `
${CLIENT_ENTRIES.map((name, index) => `import * as entry${index} from '${name}'`).join('\n')}
import { setup, WebMQError } from 'webmq-client'
import { decodeServerMessage } from 'webmq-client/protocol'
import { createServer, type WebMQServer } from 'webmq-server'
import type { Broker, Transport } from 'webmq-server/ports'

export const entries: object[] = [${CLIENT_ENTRIES.map((_, index) => `entry${index}`).join(', ')}]

interface Topics { 'chat.*': { text: string } }

export async function main(broker: Broker, transport?: Transport): Promise<string> {
  const server: WebMQServer = await createServer({ broker })
  const client = setup<Topics>({ url: '/ws' })
  client.listen('chat.*', ({ text }) => console.log(text.length, transport))
  // @ts-expect-error a payload of another type does not compile
  await client.publish('chat.1', { text: 1 })
  client.on('error', ({ error, pattern }) => console.log(error, pattern))
  return typeof decodeServerMessage + String(server) + WebMQError.name
}
`

/** The resolutions that TypeScript has for packages with exports. */
const RESOLUTIONS = {
  node16: { module: 'node16' },
  nodenext: { module: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
}

/** A tsconfig.json for `main.ts`. */
export const tsconfigOf = (name) => ({
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'],
    types: ['node'],
    ...RESOLUTIONS[name],
  },
  files: ['main.ts'],
})

/** @type {(nodes: readonly number[]) => import('../check.mjs').Check[]} */
export const moduleChecks = (nodes) => [
  ...nodes.flatMap((node) => [
    {
      name: `Node ${node}: import and require of every entry`,
      async run({ newProject }) {
        const project = await newProject(`entries-${node}`, { node })
        await project.run('npm', 'install', 'webmq-client', 'webmq-server', 'webmq-native', ...PEERS)
        project.write({
          'esm.mjs': ENTRIES.map(
            (name, index) =>
              `import * as m${index} from '${name}'; if (Object.keys(m${index}).length === 0 && '${name}' !== 'webmq-server/ports') throw new Error('${name} exports nothing')`,
          ).join('\n'),
          'cjs.cjs': `for (const name of ${JSON.stringify(ENTRIES)}) require(name)
            if (typeof require('webmq-server').createServer !== 'function') throw new Error('no createServer')
            if (typeof require('webmq-client').setup !== 'function') throw new Error('no setup')`,
        })
        await project.run('node', 'esm.mjs')
        await project.run('node', 'cjs.cjs')
      },
    },
  ]),
  {
    name: `TypeScript strict under ${Object.keys(RESOLUTIONS).join(', ')}, libraries checked`,
    limitMs: 180_000,
    async run({ newProject }) {
      const project = await newProject('types')
      const { typescript } = TOOL_VERSIONS
      // The types of `ai` need those of json-schema, and do not bring them.
      const tools = [`typescript@${typescript}`, '@types/node@20', '@types/json-schema@7']
      await project.run('npm', 'install', 'webmq-client', 'webmq-server', ...tools, ...PEERS)
      project.write({ 'main.ts': TYPED })
      for (const name of Object.keys(RESOLUTIONS)) {
        project.write({ [`tsconfig.${name}.json`]: tsconfigOf(name) })
        await project.run('npx', 'tsc', '-p', `tsconfig.${name}.json`)
      }
    },
  },
]
