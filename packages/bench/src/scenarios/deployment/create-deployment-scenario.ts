import type { Command, OptionValues } from 'commander'
import { addDeploymentOptions, type Deployment, readDeployment } from '../../deployment/deployment.js'
import { checkLimits, type OfferedLoad } from '../../deployment/limits.js'
import { probe } from '../../deployment/probe.js'
import { positiveNumber } from '../../options.js'
import type { Scenario } from '../../scenario.js'
import { type TargetChoice, webmq } from '../../targets/target-table.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import type { TrialConfig } from '../../trials/trial-options.js'
import type { Measured, SubjectContext, TrialScenario } from '../../trials/trial-scenario.js'
import { DeploymentTrial } from './remote-trial.js'

/** Settings of every scenario of a server that runs already. */
export interface DeploymentConfig extends TrialConfig {
  /** Without credentials. */
  readonly url: string
  /** Connects per second, at most. */
  readonly connectRate: number
}

export type DeploymentContext<Config extends DeploymentConfig> = SubjectContext<Config> & {
  readonly deployment: Deployment
}

/** The specific part of such a scenario. */
export interface DeploymentScenario<Config extends DeploymentConfig>
  extends Omit<TrialScenario<Config>, 'abilities' | 'subject' | 'readConfig' | 'measure' | 'defaults'> {
  readonly defaults: Omit<TrialScenario['defaults'], 'targets'>
  readConfig(common: DeploymentConfig, values: OptionValues): Config
  /** The largest load of any case. */
  loadOf(config: Config): OfferedLoad
  measure(context: DeploymentContext<Config>): Promise<Measured>
}

/** Connects per second, so that a server in production does not notice them. */
const DEFAULT_CONNECT_RATE = 50

/** Completes a scenario with the flags of a deployment, its limits, and a first try. */
export function createDeploymentScenario<Config extends DeploymentConfig>(
  scenario: DeploymentScenario<Config>,
): Scenario {
  const trialOf = (deployment: Deployment | undefined): TrialScenario<Config> => ({
    ...scenario,
    abilities: [],
    defaults: { repeat: 1, ...scenario.defaults, targets: [] },
    subject: subjectOf(deployment),
    addOptions(command: Command) {
      addDeploymentOptions(command)
      command.option('--connect-rate <n>', 'connects per second', positiveNumber, DEFAULT_CONNECT_RATE)
      scenario.addOptions?.(command)
    },
    readConfig(common, values) {
      const url = deployment === undefined ? '' : `${deployment.url.origin}${deployment.url.pathname}`
      const config = scenario.readConfig({ ...common, url, connectRate: values.connectRate as number }, values)
      if (deployment?.isUnlimited !== true) {
        checkLimits({ connectsPerSecond: config.connectRate, ...scenario.loadOf(config) })
      }
      return config
    },
    async measure(context) {
      if (deployment === undefined) throw new Error('a scenario without its deployment')
      context.progress.phase('trying the server')
      const reached = await probe(deployment, context.signal)
      const { program, config, parts } = context
      const means = { program, threads: config.generatorThreads, connectRate: config.connectRate, parts }
      const trials: DeploymentTrial[] = []
      const startTrial = async () => {
        const trial = await DeploymentTrial.start(deployment, reached, means)
        trials.push(trial)
        return trial
      }
      const measured = await scenario.measure({ ...context, startTrial, deployment })
      const suites = trials.flatMap((trial) => trial.suites)
      return suites.length === 0 ? measured : { ...measured, notes: [`TLS: ${suites.join(', ')}.`] }
    },
  })
  const { prepare: _, ...shown } = createTrialScenario(trialOf(undefined))
  return {
    ...shown,
    prepare: (values: OptionValues) => createTrialScenario(trialOf(readDeployment(values))).prepare(values),
  }
}

function subjectOf(deployment: Deployment | undefined): TargetChoice {
  const label = deployment?.url.host ?? ''
  return { label, spec: { name: label, program: 'raw', settings: {}, abilities: [], wire: webmq } }
}
