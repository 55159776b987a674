import { readerOf } from '../../docs/readers.mjs'
import { Missing } from '../check.mjs'
import { installedProgram } from '../programs.mjs'
import { filesOf } from './react-native-app.mjs'

const { exampleOf } = readerOf('test/packages/checks/react-native.mjs')

const REACT_NATIVE = '0.87.1'
const ofReactNative = (...names) => names.map((name) => `${name}@${REACT_NATIVE}`)
const PHONE = [
  ...ofReactNative('react-native', '@react-native/babel-preset', '@react-native/jest-preset'),
  ...['@react-native-community/netinfo@12.0.1', 'react@19.3.1', '@types/react@19.3.0'],
  ...['jest@29.7.0', 'typescript@5.9.3', 'ws@8.23.0'],
]
const BUILD = [
  ...ofReactNative('@react-native/babel-preset', '@react-native/metro-config'),
  ...['@babel/core@7', 'abort-controller@3.0.0', 'metro@0.87.1'],
]
/** The newest of Hermes on npm that runs programs; those of later versions of React Native only compile. */
const HERMES = '0.12.0'
const HERMES_PROGRAMS = {
  'linux-x64': 'linux64-bin/hermes',
  'darwin-x64': 'osx-bin/hermes',
  'darwin-arm64': 'osx-bin/hermes',
}

const BLOCKS = Object.fromEntries(
  ['setup', 'development', 'jest'].map((name) => [name, exampleOf('client/react-native.md', name).code]),
)

async function createApp({ newProject, newestNode }, name, packages) {
  const project = await newProject(name, { node: newestNode })
  project.write(filesOf(BLOCKS))
  await project.run('npm', 'install', '--ignore-scripts', 'webmq-client', ...packages)
  return project
}

/** @type {import('../check.mjs').Check[]} */
export const reactNativeChecks = [
  {
    name: `React Native ${REACT_NATIVE}: the page compiles, and Jest plays a phone`,
    async run(context) {
      const project = await createApp(context, 'phone', PHONE)
      await project.run('npx', 'tsc')
      Object.assign(project.env, { WEBMQ_URL: context.server.url })
      await project.run('npx', 'jest')
    },
  },
  {
    name: `React Native ${REACT_NATIVE}: Metro builds, and Hermes ${HERMES} listens and publishes`,
    async run(context) {
      const program = HERMES_PROGRAMS[`${process.platform}-${process.arch}`]
      if (program === undefined) throw new Missing('npm has no Hermes for this platform')
      const hermes = await installedProgram('hermes-engine-cli', HERMES, program)
      const project = await createApp(context, 'hermes', BUILD)
      const options = ['--out', 'built.js', '--platform', 'ios', '--dev', 'false', '--minify', 'false']
      await project.run('npx', 'metro', 'build', 'hermes.js', ...options)
      const output = await project.run(hermes, 'built.js')
      if (!output.includes('heard grüß 🎉, bytes 🎉')) throw new Error(output)
    },
  },
]
