/** Starts the installed server on a free port, and says how it answers. */
export async function startServer(project, command = ['npx', 'webmq-server'], options = []) {
  const server = await project.start(/listens on ws:\/\/127\.0\.0\.1:(\d+)\/ws/, ...command, '--port', '0', ...options)
  const http = `http://127.0.0.1:${server.match[1]}`
  return { url: `ws://127.0.0.1:${server.match[1]}/ws`, http, output: server.output, stop: server.stop }
}

/** What /health says: the name of the transport, and why it was chosen. */
async function transportOf({ http }) {
  const response = await fetch(`${http}/health`)
  const text = await response.text()
  if (!response.ok) throw new Error(`/health answers ${response.status}: ${text}`)
  const { transport } = JSON.parse(text)
  if (transport === undefined) throw new Error(`/health names no transport: ${text}`)
  return transport
}

/** Asserts that /health names this transport, and a reason exactly when the engine is not used. */
export async function expectTransport(server, name) {
  const transport = await transportOf(server)
  if (transport.name !== name) throw new Error(`the transport is ${JSON.stringify(transport)}, not ${name}`)
  if (name !== 'native' && !transport.reason) throw new Error(`/health gives no reason: ${JSON.stringify(transport)}`)
  return transport.reason ?? name
}

/** A project with the server, started once and stopped. */
async function installAndStart(
  { newProject, engine },
  { node, name, packages = [], npmrc = '', args = [], transport = engine },
) {
  const project = await newProject(name, { node, npmrc })
  await project.run('npm', 'install', ...args, 'webmq-server', ...packages)
  const server = await startServer(project)
  const says = await expectTransport(server, transport)
  await server.stop()
  return says
}

/** @type {(nodes: readonly number[]) => import('../check.mjs').Check[]} */
export const serverChecks = (nodes) => [
  ...nodes.map((node) => ({
    name: `Node ${node}: npm install webmq-server, npx webmq-server answers /health`,
    run: (context) => installAndStart(context, { node, name: `server-${node}` }),
  })),
  {
    name: 'npx webmq-server in an empty folder',
    async run({ newProject, engine }) {
      const project = await newProject('npx')
      const server = await startServer(project, ['npx', '--yes', 'webmq-server'])
      const says = await expectTransport(server, engine)
      await server.stop()
      return says
    },
  },
  {
    name: 'behind an .npmrc that forbids install scripts',
    run: (context) => installAndStart(context, { name: 'no-scripts', npmrc: 'ignore-scripts=true' }),
  },
  {
    name: 'no package has an install script',
    async run({ newProject }) {
      const project = await newProject('scripts')
      await project.run('npm', 'install', 'webmq-server', 'webmq-client')
      const listed = await project.run(
        'npm',
        'query',
        ':attr(scripts, [preinstall]), :attr(scripts, [install]), :attr(scripts, [postinstall])',
      )
      const names = JSON.parse(listed.slice(listed.indexOf('['))).map(({ name }) => name)
      if (names.length > 0) throw new Error(`install scripts: ${names.join(', ')}`)
    },
  },
  {
    name: '--omit=optional falls to ws, and says why',
    run: (context) => installAndStart(context, { name: 'omit-optional', args: ['--omit=optional'], transport: 'ws' }),
  },
  {
    name: 'with ws@7 in the project',
    run: (context) => installAndStart(context, { name: 'ws7', packages: ['ws@7'] }),
  },
  {
    name: 'with ws@7 in the project, without the engine',
    run: (context) =>
      installAndStart(context, { name: 'ws7-ws', packages: ['ws@7'], args: ['--omit=optional'], transport: 'ws' }),
  },
  {
    name: 'no cargo is on the PATH of the projects',
    async run({ newProject }) {
      const project = await newProject('path')
      const found = await project.run('sh', '-c', 'command -v cargo || command -v rustc || echo none')
      if (found.trim() !== 'none') throw new Error(found)
    },
  },
]
