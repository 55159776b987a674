import { TOOL_VERSIONS } from '../programs.mjs'

const ENTRIES = [
  'webmq-client',
  'webmq-client/protocol',
  'webmq-client/history',
  'webmq-client/iterate',
  'webmq-client/load',
  'webmq-client/presence',
  'webmq-client/requests',
  'webmq-client/resume',
  'webmq-client/testing',
  'webmq-server',
  'webmq-server/ports',
  'webmq-server/transports',
  'webmq-native',
]

export const TYPED = `
import { setup, WebMQError } from 'webmq-client'
import { decodeServerMessage } from 'webmq-client/protocol'
import { createServer, type WebMQServer } from 'webmq-server'
import type { Broker, Transport } from 'webmq-server/ports'

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
        await project.run('npm', 'install', 'webmq-client', 'webmq-server', 'webmq-native')
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
      await project.run('npm', 'install', 'webmq-client', 'webmq-server', `typescript@${typescript}`, '@types/node@20')
      project.write({ 'main.ts': TYPED })
      for (const name of Object.keys(RESOLUTIONS)) {
        project.write({ [`tsconfig.${name}.json`]: tsconfigOf(name) })
        await project.run('npx', 'tsc', '-p', `tsconfig.${name}.json`)
      }
    },
  },
]
