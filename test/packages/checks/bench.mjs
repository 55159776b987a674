/** Small: the machine runs the server and the registry too. */
const SMALL = ['--tiers', '5', '--connect-rate', '10', '--no-progress']

async function installBench({ newProject }) {
  const project = await newProject('bench')
  await project.run('npm', 'install', 'webmq-bench')
  return project
}

const bench = (project, server, ...args) => project.run('npx', 'webmq-bench', '--url', server.url, ...SMALL, ...args)

/** @type {import('../check.mjs').Check[]} */
export const benchChecks = [
  {
    name: 'npx webmq-bench --help',
    async run(context) {
      const project = await installBench(context)
      const help = await project.run('npx', 'webmq-bench', '--help')
      if (!/^Usage: /m.test(help)) throw new Error(help)
    },
  },
  {
    name: 'npx webmq-bench --url measures an installed server',
    async run(context) {
      const project = await installBench(context)
      await bench(project, context.server, '--duration', '2', '--warmup', '1', '--assert', 'gapCount=0')
    },
  },
  {
    name: 'npx webmq-bench --scenario ping takes the prebuilt load generator',
    async run(context) {
      const project = await installBench(context)
      const args = ['--scenario', 'ping', '--pings', '5', '--interval', '100', '--assert', 'missingCount=0']
      const measured = bench(project, context.server, ...args)
      if (context.hasLoadgen) await measured
      else return await expectRefusal(measured)
    },
  },
]

/** Where no load generator was built, the bench says so. It has no cargo to build one. */
async function expectRefusal(measured) {
  const refusal = await measured.then(
    () => 'it measured without a load generator',
    ({ message }) => message,
  )
  const [reason] = refusal.match(/the load generator .* (is not installed|runs on Linux).*/) ?? []
  if (reason === undefined) throw new Error(refusal)
  return reason
}
