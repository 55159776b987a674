import { chmodSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { readerOf } from '../../docs/readers.mjs'
import { visitBuilt, visitDev } from '../chat-visit.mjs'
import { TOOL_VERSIONS } from '../programs.mjs'

const PAGE = 'docs/first-app.md'
const BLOCKS = readerOf('test/packages/checks/first-app.mjs').examplesOf(PAGE)
/** Blocks that are files name them first. */
const FILE_NAME = /^(?:\/\/|#|\/\*) ([\w./-]+\.\w+)(?: \*\/)?\n/
/** Ports that the page names, or that the programs take. */
const PORTS = ['8081', '8082', '8000', '3000', '8080', '5173']
/** So that tokens are renewed while the check runs. */
const LIFETIME = '8s'

/** @type {import('../check.mjs').Check[]} */
export const firstAppChecks = [
  {
    name: `${PAGE}: login, history and two nodes behind nginx`,
    limitMs: 600_000,
    async run({ newProject, newestNode, registry }) {
      const { freePort, obtainBalancer, startRedis } = await import('webmq-services')
      const ports = Object.fromEntries(await Promise.all(PORTS.map(async (port) => [port, String(await freePort())])))
      const redis = await startRedis({ isPrivate: true })
      try {
        const project = await newProject('first-app', { node: newestNode })
        const blocks = blocksFor(project.folder, ports, redis.url)
        const nginx = await obtainBalancer('nginx')
        prepareMachine(project, registry, nginx.file)
        return await follow(project, blocks, ports)
      } finally {
        await redis.stop()
      }
    },
  },
]

/** The blocks of the page by name, for other ports and folders. */
function blocksFor(folder, ports, redisUrl) {
  const replaced = new Map([
    ['vite@latest', `vite@${TOOL_VERSIONS['create-vite']}`],
    ["'10m'", `'${LIFETIME}'`],
    ['redis://127.0.0.1:6379', redisUrl],
    ['/srv/chat', `${folder}/srv/chat`],
    ['/etc/nginx/conf.d', `${folder}/nginx/conf.d`],
    ['listen 8000', `listen 127.0.0.1:${ports[8000]}`],
    ['webmq({ start', `webmq({ target: 'http://127.0.0.1:${ports[8080]}', start`],
    ['npm run dev', `npm run dev -- --strictPort --host 127.0.0.1 --port ${ports[5173]}`],
    ...['8081', '8082', '3000'].map((port) => [port, ports[port]]),
  ])
  for (const from of replaced.keys()) {
    if (!BLOCKS.some(({ code }) => code.includes(from))) throw new Error(`${PAGE} has no ${from} any more`)
  }
  // At once: a number or folder that was put in may look like another one.
  const all = new RegExp([...replaced.keys()].map((from) => from.replaceAll(/[()]/g, '\\$&')).join('|'), 'g')
  return new Map(BLOCKS.map(({ name, code }) => [name, code.replaceAll(all, (from) => replaced.get(from))]))
}

/** What a machine with nginx has, below the folder of the project, and programs by the names that the page uses. */
function prepareMachine(project, registry, nginx) {
  const { folder, env } = project
  const root = process.getuid?.() === 0 ? 'user root;' : ''
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  project.write({
    '.home/.npmrc': registry.npmrc,
    'nginx/nginx.conf': `daemon off; ${root} pid nginx.pid; error_log stderr notice; events {}
http { types { text/html html; text/javascript js; text/css css; image/svg+xml svg; }
  access_log off; ${temporary.join(' ')} include conf.d/*.conf; }`,
    'bin/sudo': '#!/bin/sh\nexec "$@"\n',
    'bin/nginx': `#!/bin/sh\nexec ${nginx} -p ${folder}/nginx -e stderr -c nginx.conf "$@"\n`,
    'bin/openssl': '#!/bin/sh\nexec /usr/bin/openssl "$@"\n',
  })
  mkdirSync(path.join(folder, 'nginx', 'conf.d'))
  for (const name of ['sudo', 'nginx', 'openssl']) chmodSync(path.join(folder, 'bin', name), 0o755)
  env.PATH = [path.join(folder, 'bin'), env.PATH].join(path.delimiter)
  env.npm_config_yes = 'true'
}

/** Does what the page says, in its order, and looks at it in a browser. Returns the times. */
async function follow(project, blocks, ports) {
  const times = []
  const timed = async (what, work) => {
    const startedAtMs = performance.now()
    const result = await work()
    times.push(`${what} ${((performance.now() - startedAtMs) / 1_000).toFixed(0)} s`)
    return result
  }
  const inApp = (code) => ['sh', '-ec', `cd chat\n${code}`]
  const start = (pattern, code) => project.start(pattern, ...inApp(`exec ${code}`))

  await timed('installing', () => project.run('sh', '-ec', blocks.get('create')))
  for (const code of blocks.values()) {
    const [, file] = FILE_NAME.exec(code) ?? []
    if (file !== undefined) project.write({ [`chat/${file}`]: code })
  }
  const backend = await start(/listens/, blocks.get('backend-start'))
  const dev = await timed('dev server', () => start(/ready in/, blocks.get('dev')))
  try {
    await timed('visit', () => visitDev(`http://127.0.0.1:${ports[5173]}`))
  } finally {
    await dev.stop()
  }
  const lines = blocks.get('nodes').split('\n')
  const startNode = (line) => start(/listens on/, line)
  const nodes = await timed('two nodes', () => Promise.all(lines.map(startNode)))
  const nginx = await project.start(/start worker process/, 'nginx')
  await timed('build and nginx', () => project.run(...inApp(blocks.get('deploy'))))
  const restart = async (index) => {
    await nodes[index].stop()
    nodes[index] = await startNode(lines[index])
  }
  await timed('visit with two restarts', () => visitBuilt(`http://127.0.0.1:${ports[8000]}`, restart))
  for (const program of [nginx, ...nodes, backend]) await program.stop()
  return times.join(', ')
}
