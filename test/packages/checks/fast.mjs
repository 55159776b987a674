import path from 'node:path'
import { ROOT } from '../../../scripts/lib/steps.mjs'
import { expectHello, ROUND_TRIP } from './client.mjs'
import { TYPED, tsconfigOf } from './modules.mjs'
import { expectTransport } from './server.mjs'

const RESOLUTION = 'node16'

/**
 * What `npm test` checks: with the running Node, one project for the server, one for the client, and the repository's
 * compiler.
 * @type {import('../check.mjs').Check[]}
 */
export const fastChecks = [
  {
    name: 'npx webmq-server answers /health and names its transport',
    run: ({ server, engine }) => expectTransport(server, engine),
  },
  {
    name: 'npx webmq-server init writes what is of deploy/, too',
    async run({ serverProject: project }) {
      await project.run('npx', 'webmq-server', 'init', 'helm', 'made', '--host', 'chat.example.org')
      const names = ['chart/Chart.yaml', 'image/healthy.sh', 'grafana/boards/webmq.json', '.gitignore']
      await project.run('node', '-e', `${JSON.stringify(names)}.map((name) => fs.readFileSync('made/' + name))`)
    },
  },
  {
    name: 'webmq-client in another project listens and publishes',
    async run({ newProject, server }) {
      const project = await newProject('client')
      await project.run('npm', 'install', 'webmq-client', ...('WebSocket' in globalThis ? [] : ['ws']))
      project.write({ 'trial.js': ROUND_TRIP })
      await expectHello(await project.run('node', 'trial.js', server.url))
    },
  },
  {
    name: `TypeScript strict under ${RESOLUTION}`,
    async run({ serverProject: project }) {
      const { compilerOptions, files } = tsconfigOf(RESOLUTION)
      const typeRoots = [path.join(ROOT, 'node_modules', '@types')]
      // The full run checks the libraries too, and the other resolutions.
      const options = { ...compilerOptions, typeRoots, skipLibCheck: true }
      project.write({ 'main.ts': TYPED, 'tsconfig.json': { compilerOptions: options, files } })
      await project.run('node', path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'))
    },
  },
]
