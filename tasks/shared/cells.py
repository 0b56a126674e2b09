"""Recurrent cells, and a network that reads a sequence with a cell."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from units import Unit


class Cell(nn.Module, ABC):
    """Base class of recurrent cells, from an input and a state to the next state.

    Args:
        input_size: size of the input, >= 1.
        hidden_size: size of the hidden state h, >= 1.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size

    def start(self, x: Tensor) -> Tensor:
        """Return the initial state, 0, for each row of an input, [batch, hidden_size]."""
        return x.new_zeros(x.shape[0], self.hidden_size)

    @abstractmethod
    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next state.

        Args:
            x: shape [batch, input_size].
            state: shape as returned by `start`.

        Returns:
            The shape of `state`.
        """

    def hidden(self, state: Tensor) -> Tensor:
        """Return the hidden state h of a state, [batch, hidden_size]."""
        return state


class UnitCell(Cell):
    """Cell of a unit: h_t = unit([x_t, h_{t-1}]).

    Args:
        unit: class of the unit.
        input_size: size of the input, >= 1.
        hidden_size: size of the state, >= 1.

    Example:
        >>> from units import UNITS
        >>> cell = UnitCell(UNITS["NAU"], 3, 2)
        >>> x = torch.ones(5, 3)
        >>> cell(x, cell.start(x)).shape
        torch.Size([5, 2])
    """

    def __init__(self, unit: type[Unit], input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.unit = unit(input_size + hidden_size, hidden_size)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next state: the unit's output for input and state."""
        next_state: Tensor = self.unit(torch.cat([x, state], -1))
        return next_state


class TanhCell(Cell):
    """Cell of a dense layer with tanh.

        h <- tanh(W [x, h] + b)

    Initial weights and biases are uniform within ± 1 / sqrt(hidden_size).

    Source: Elman, "Finding structure in time", 1990, in the form of `torch.nn.RNN`.

    Args:
        input_size: size of the input, >= 1.
        hidden_size: size of h, >= 1.

    Example:
        >>> cell = TanhCell(3, 2)
        >>> x = torch.ones(5, 3)
        >>> cell(x, cell.start(x)).shape
        torch.Size([5, 2])
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.weight, self.bias = _uniform(hidden_size, input_size + hidden_size, hidden_size)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next h."""
        return self.activation(nn.functional.linear(torch.cat([x, state], -1), self.weight, self.bias))

    def activation(self, x: Tensor) -> Tensor:
        """Apply tanh elementwise."""
        return torch.tanh(x)


class ReLUCell(TanhCell):
    """Cell of a dense layer with ReLU: h <- max(0, W [x, h] + b)."""

    def activation(self, x: Tensor) -> Tensor:
        """Apply ReLU elementwise."""
        return torch.relu(x)


class LSTM(Cell):
    """Long short-term memory.

        i, f, o = σ(W [x, h] + b),  g = tanh(W_g [x, h] + b_g),  c <- f c + i g,  h = o tanh(c)

    Initial weights and biases are uniform within ± 1 / sqrt(hidden_size). The state is [h, c].

    Source: Hochreiter & Schmidhuber, "Long short-term memory", 1997, with the forget gate of Gers et al., 2000.

    Args:
        input_size: size of the input, >= 1.
        hidden_size: size of h, >= 1.

    Example:
        >>> cell = LSTM(3, 2)
        >>> x = torch.ones(5, 3)
        >>> cell.hidden(cell(x, cell.start(x))).shape
        torch.Size([5, 2])
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.weight, self.bias = _uniform(4 * hidden_size, input_size + hidden_size, hidden_size)

    def start(self, x: Tensor) -> Tensor:
        """Return the initial state, 0, [batch, 2 hidden_size]."""
        return x.new_zeros(x.shape[0], 2 * self.hidden_size)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next state, [batch, 2 hidden_size]."""
        gates = nn.functional.linear(torch.cat([x, self.hidden(state)], -1), self.weight, self.bias)
        return self.step(gates, state)

    def step(self, gates: Tensor, state: Tensor) -> Tensor:
        """Compute the next state from the gates' pre-activations i, f, o, g, [batch, 4 hidden_size]."""
        size = self.hidden_size
        i, f, o = torch.sigmoid(gates[..., : 3 * size]).chunk(3, -1)
        c = f * state[..., size:] + i * torch.tanh(gates[..., 3 * size :])
        return torch.cat([o * torch.tanh(c), c], -1)

    def hidden(self, state: Tensor) -> Tensor:
        """Return the first half of a state, h, [batch, hidden_size]."""
        return state[..., : self.hidden_size]


class GRU(Cell):
    """Gated recurrent unit.

        r, z = σ(W [x, h] + b),  n = tanh(V x + r (U h + c)),  h <- (1 - z) n + z h

    Initial weights and biases are uniform within ± 1 / sqrt(hidden_size).

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, in the form of
    `torch.nn.GRU`.

    Args:
        input_size: size of the input, >= 1.
        hidden_size: size of h, >= 1.

    Example:
        >>> cell = GRU(3, 2)
        >>> x = torch.ones(5, 3)
        >>> cell(x, cell.start(x)).shape
        torch.Size([5, 2])
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.weight_input, self.bias_input = _uniform(3 * hidden_size, input_size, hidden_size)
        self.weight_hidden, self.bias_hidden = _uniform(3 * hidden_size, hidden_size, hidden_size)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next h."""
        from_input = nn.functional.linear(x, self.weight_input, self.bias_input)
        from_hidden = nn.functional.linear(state, self.weight_hidden, self.bias_hidden)
        size = self.hidden_size
        r, z = torch.sigmoid(from_input[..., : 2 * size] + from_hidden[..., : 2 * size]).chunk(2, -1)
        candidate = torch.tanh(from_input[..., 2 * size :] + r * from_hidden[..., 2 * size :])
        next_state: Tensor = candidate + z * (state - candidate)
        return next_state


class SequenceReader(nn.Module):
    """Network that reads a sequence with a cell, and computes the output from the last state.

    Args:
        cell: cell applied to each element.
        output: layer from the last h to the output.

    Example:
        >>> from units import UNITS
        >>> reader = SequenceReader(UnitCell(UNITS["NAU"], 3, 2), UNITS["NMU"](2, 1))
        >>> reader(torch.ones(5, 10, 3)).shape
        torch.Size([5, 1])
    """

    def __init__(self, cell: Cell, output: nn.Module) -> None:
        super().__init__()
        self.cell = cell
        self.output = output

    def forward(self, x: Tensor) -> Tensor:
        """Compute the output from the state after the last element.

        Args:
            x: shape [batch, time, input_size]; time >= 1.

        Returns:
            The output layer's shape, such as [batch, outputs].
        """
        state = self.cell.start(x[:, 0])
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        output: Tensor = self.output(self.cell.hidden(state))
        return output


def _uniform(out_size: int, in_size: int, hidden_size: int) -> tuple[nn.Parameter, nn.Parameter]:
    reach = hidden_size**-0.5
    weight, bias = torch.empty(out_size, in_size), torch.empty(out_size)
    return nn.Parameter(weight.uniform_(-reach, reach)), nn.Parameter(bias.uniform_(-reach, reach))
