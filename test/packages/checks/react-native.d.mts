export declare const reactNativeChecks: readonly { readonly name: string }[]
