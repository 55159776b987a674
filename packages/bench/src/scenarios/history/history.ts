import { findLoadgen } from '../../loadgen/find.js'
import { createRowScenario, measureInTurns } from '../../trials/row-scenario.js'
import { addHistoryOptions, readHistoryConfig } from './options.js'
import { HISTORY_COLUMNS, HISTORY_IDENTITY, historyRow, historyTarget } from './result.js'
import { observeHistory } from './run.js'
import { historyHeading, historyText } from './text.js'

/** Users who come, listen, read the last ten seconds, talk for a while and leave: AnyCable's broker benchmark. */
export const historyScenario = createRowScenario({
  name: 'history',
  summary: 'virtual users who listen, read the last ten seconds and talk, on every broker, on one node and on three',
  examples: [
    ['', "AnyCable's broker benchmark, memory broker, 1,500 users: two and a half minutes"],
    ['--preset minute --broker redis', 'the same users for a minute, who come and go more often'],
    ['--preset minute --broker nats --backends 3', 'three nodes behind HAProxy'],
    ['--preset minute --all --json history.json', 'every broker, on 1 and on 3 backends, beside the figures of others'],
    ['--users 150 --senders-ratio 0.5 --sending-rate 0.7 --rounds 4 --duration 44', 'fewer users who say more'],
    ["--assert joinMissCount=0 --assert 'historyMs.p95 < 0.8ms'", 'in CI'],
  ],
  columns: HISTORY_COLUMNS,
  identity: HISTORY_IDENTITY,
  addOptions: addHistoryOptions,
  readConfig: readHistoryConfig,
  targets: (config) => config.cases.map((testCase) => historyTarget(testCase, config)),
  describe: (config) => ({ ...config }),
  heading: historyHeading,
  async measure(config, { progress: output, signal }) {
    const program = await findLoadgen(output)
    const { cases, repeat, users, rounds } = config
    return await measureInTurns({
      cases,
      repeat,
      columns: HISTORY_COLUMNS,
      progress: output,
      signal,
      titleOf: ({ broker, backends }) =>
        `${broker}, ${backends === 1 ? '1 backend' : `${backends} backends`}, ${users.toLocaleString('en')} users`,
      identityOf: (testCase) => ({
        target: historyTarget(testCase, config),
        mode: 'history',
        subscribers: users,
        backends: testCase.backends,
        rounds,
      }),
      measure: async (testCase, progress) =>
        historyRow(testCase, config, await observeHistory(testCase, { config, program, progress, signal })),
    })
  },
  text: historyText,
})
