import { bunProgram, denoProgram } from '../programs.mjs'

/** A program that listens and publishes, for every runtime. Node 20 has no WebSocket of its own. */
export const ROUND_TRIP = `
import { WebMQClient, WebMQError } from 'webmq-client'

const url = globalThis.process?.argv[2] ?? Deno.args[0]
const WebSocket = globalThis.WebSocket ?? (await import('ws')).WebSocket
const client = new WebMQClient({ url, WebSocket })
const key = 'trial.' + Math.random().toString(36).slice(2)
const heard = new Promise((resolve) => client.listen('trial.*', (payload, message) => message.key === key && resolve(payload)))
await client.publish(key, { text: 'hello' })
const { text } = await heard
if (text !== 'hello' || typeof WebMQError !== 'function') throw new Error('got ' + text)
client.close()
console.log('heard ' + text)
`

export async function expectHello(output) {
  if (!output.includes('heard hello')) throw new Error(`the client heard nothing:\n${output}`)
}

async function inNode({ newProject, server }, node) {
  const project = await newProject(`client-${node}`, { node })
  await project.run('npm', 'install', 'webmq-client', ...(node < 22 ? ['ws'] : []))
  project.write({ 'trial.js': ROUND_TRIP })
  await expectHello(await project.run('node', 'trial.js', server.url))
}

/** @type {(nodes: readonly number[]) => import('../check.mjs').Check[]} */
export const clientChecks = (nodes) => [
  ...nodes.map((node) => ({
    name: `Node ${node}: webmq-client in another project listens and publishes`,
    run: (context) => inNode(context, node),
  })),
  {
    name: 'Deno: webmq-client listens and publishes',
    async run({ newProject, server }) {
      const deno = await denoProgram()
      const project = await newProject('deno')
      await project.run('npm', 'install', 'webmq-client')
      project.write({ 'trial.js': ROUND_TRIP })
      await expectHello(await project.run(deno, 'run', '--allow-net', '--allow-env', 'trial.js', server.url))
    },
  },
  {
    name: 'Bun: webmq-client installed by Bun listens and publishes',
    async run({ newProject, server }) {
      const bun = await bunProgram()
      const project = await newProject('bun')
      await project.run(bun, 'add', 'webmq-client')
      project.write({ 'trial.js': ROUND_TRIP })
      await expectHello(await project.run(bun, 'trial.js', server.url))
    },
  },
]
