// What ESLint looks for in our JavaScript: mistakes. How it is laid out is Prettier's (package.json).
import js from '@eslint/js';
import globals from 'globals';

const both = { ...globals['shared-node-browser'], WebAssembly: 'readonly', SharedArrayBuffer: 'readonly' };

export default [
  { ignores: ['build/', '**/node_modules/'] },
  js.configs.recommended,
  {
    languageOptions: { globals: both },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'no-shadow': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      complexity: ['error', 24],
      'max-lines': ['error', 500],
    },
  },
  {
    files: ['js/**'],
    languageOptions: {
      globals: {
        ...both,
        self: 'readonly',
        Worker: 'readonly',
        navigator: 'readonly',
        crossOriginIsolated: 'readonly',
        WorkerGlobalScope: 'readonly',
        document: 'readonly',
      },
    },
  },
  { files: ['web/**/*.js'], languageOptions: { globals: globals.browser } },
  {
    files: ['tests/js/**', 'tools/**', 'web/*.mjs', 'js/cli.js', 'examples/**'],
    languageOptions: { globals: globals.node },
  },
  {
    files: ['tests/browser/**', 'tools/bench/**', 'examples/**'],
    languageOptions: { globals: { ...globals.node, ...globals.browser, ...globals.worker } },
  },
];
