import path from 'node:path'
import { ROOT } from '../../lib/steps.mjs'
import { expectHello, ROUND_TRIP } from './client.mjs'
import { TYPED, tsconfigOf } from './modules.mjs'
import { expectTransport } from './server.mjs'

const RESOLUTIONS_HERE = ['node16', 'bundler']

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
    name: 'webmq-client in another project listens and publishes',
    async run({ newProject, server }) {
      const project = await newProject('client')
      await project.run('npm', 'install', 'webmq-client', ...('WebSocket' in globalThis ? [] : ['ws']))
      project.write({ 'trial.js': ROUND_TRIP })
      await expectHello(await project.run('node', 'trial.js', server.url))
    },
  },
  {
    name: `TypeScript strict under ${RESOLUTIONS_HERE.join(' and ')}`,
    async run({ serverProject: project }) {
      project.write({ 'main.ts': TYPED })
      for (const name of RESOLUTIONS_HERE) {
        const { compilerOptions, files } = tsconfigOf(name)
        const typeRoots = [path.join(ROOT, 'node_modules', '@types')]
        // Libraries are checked by the full run.
        const options = { ...compilerOptions, typeRoots, skipLibCheck: true }
        project.write({ [`tsconfig.${name}.json`]: { compilerOptions: options, files } })
        await project.run(
          'node',
          path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc'),
          '-p',
          `tsconfig.${name}.json`,
        )
      }
    },
  },
]
